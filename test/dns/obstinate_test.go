// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"errors"
	"fmt"
	"testing"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/plugin"
	"github.com/miekg/dns"
)

// Plugins that answer nothing and fail once where their argument says: at "restart" or at "shutdown". They differ in
// whether the server asks them before the plugin in question or after it.
const (
	obstinateBefore = "obstinate_before"
	obstinateAfter  = "obstinate_after"
)

func init() {
	plugin.Register(obstinateBefore, obstinate)
	plugin.Register(obstinateAfter, obstinate)
}

var errObstinate = errors.New("no")

func obstinate(c *caddy.Controller) error {
	failed := false
	fail := func() error {
		if failed {
			return nil
		}
		failed = true
		return errObstinate
	}
	for c.Next() {
		switch args := c.RemainingArgs(); {
		case len(args) == 1 && args[0] == "restart":
			c.OnRestart(fail)
		case len(args) == 1 && args[0] == "shutdown":
			c.OnShutdown(fail)
		default:
			return c.ArgErr()
		}
	}
	return nil
}

// The server says that a reload failed, and does not say whether the old instance serves or the new one: whichever does
// has to have a watch that lives, and no other may have one.
func TestAfterAReloadThatAnotherPluginSpoilsAnswersFollowTheObjects(t *testing.T) {
	cluster := clusters(t)[0]
	spoiled := namespace(t, cluster, "spoiled")
	config := admin(t, cluster)
	const qname = "web.spoiled.svc.clusterset.local."
	for _, tc := range []struct {
		name, line string
		ttl        uint32 // of the one that serves
	}{
		{"a plugin before it does not shut down", obstinateBefore + " shutdown", 30},
		{"a plugin after it does not shut down", obstinateAfter + " shutdown", 30},
		{"a plugin before it refuses to restart", obstinateBefore + " restart", 10},
		{"a plugin after it refuses to restart", obstinateAfter + " restart", 10},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spoiled := objects{t, cluster, spoiled.namespace}
			spoiled.apply(web("10.42.0.1"))
			port := fmt.Sprint(freeAddress(t).Port())
			corefile := func(line, options string) string {
				return fmt.Sprintf(
					".:%s {\n bind 127.0.0.1\n %s\n multicluster clusterset.local {\n kubeconfig %s\n %s\n }\n}",
					port, line, config, options)
			}
			s := serve(t, corefile(tc.line, "ttl 10"))
			s.until(qname, dns.TypeA, "10.42.0.1")
			held := heldImports(t)

			// Other labels make it a watch of its own.
			if _, err := s.instance.Restart(input(corefile("", "labels a!=b\n ttl 30"))); err == nil {
				t.Fatal("the reload did not fail")
			}
			instances := caddy.Instances()
			s.instance = instances[len(instances)-1]
			s.serving()
			for _, ip := range []string{"10.42.0.2", "10.42.0.3"} {
				spoiled.apply(web(ip))
				s.until(qname, dns.TypeA, ip)
			}
			if got := s.query(qname, dns.TypeA).Answer[0].Header().Ttl; got != tc.ttl {
				t.Errorf("the TTL is %d, want %d: another instance serves", got, tc.ttl)
			}
			wait(t, func() error {
				if now := heldImports(t); now != held {
					return fmt.Errorf("%v imports are held, want %v", now, held)
				}
				return nil
			})
		})
	}
}
