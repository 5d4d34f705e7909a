// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/watch"
)

// away is the kubeconfig of an API server that is away.
func away(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(
		`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}],
		clusters: [{name: c, cluster: {server: "http://%s"}}]}`, listener.Addr())
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A reload to another cluster, or to another selection, must not go on with the answers of before, and must not lose
// them either.
func TestAReloadToAnAPIServerThatIsAwayFails(t *testing.T) {
	path := away(t)
	synctest.Test(t, func(t *testing.T) {
		m := newMulticluster()
		m.Zones, m.options.Kubeconfig = []string{testZone}, path
		if _, err := m.start(true); err == nil {
			t.Error("it started")
		}
		if left := watch.States(); len(left) > 0 {
			t.Errorf("it left %v", left)
		}
	})
}

func TestAStartWithoutTheAPIServerServesNothingInItsZones(t *testing.T) {
	path := away(t)
	synctest.Test(t, func(t *testing.T) {
		m := newMulticluster()
		m.Zones, m.options.Kubeconfig = []string{testZone}, path
		stop, err := m.start(false)
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		reply := ask(t, m, new(dns.Msg).SetQuestion("web.demo.svc."+testZone, dns.TypeA), udpClient)
		if reply.Rcode != dns.RcodeServerFailure {
			t.Errorf("the answer is %s", dns.RcodeToString[reply.Rcode])
		}
	})
}

// Answers can be lost only to an instance that takes the place of another one which has some for the same zones.
func TestWhatAReloadCanLose(t *testing.T) {
	instance := func(all ...*Multicluster) *caddy.Instance {
		i := &caddy.Instance{Storage: map[any]any{}}
		for _, m := range all {
			i.Storage[m] = m
		}
		return i
	}
	for name, test := range map[string]struct {
		old  func(m *Multicluster)
		same bool // the other plugin is in the same instance
		want bool
	}{
		"answers":              {func(*Multicluster) {}, false, true},
		"answers not yet":      {func(m *Multicluster) { m.index.Store(nil) }, false, false},
		"another zone":         {func(m *Multicluster) { m.Zones = []string{"example.org."} }, false, false},
		"one zone of two":      {func(m *Multicluster) { m.Zones = []string{"example.org.", testZone} }, false, true},
		"in the same instance": {func(*Multicluster) {}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			old, next := newTestPlugin(t, demo), newMulticluster()
			next.Zones = []string{testZone}
			test.old(old)
			started.Store(old, func() {})
			defer old.stop()
			instances := []*caddy.Instance{instance(old), instance(next)}
			if test.same {
				instances = []*caddy.Instance{instance(old, next)}
			}
			if got := next.replacesAnswers(instances); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestLocalAddresses(t *testing.T) {
	for name, test := range map[string]struct {
		hosts []string
		want  []netip.Addr
	}{
		"global": {
			[]string{"10.0.0.1", "169.254.20.10", "127.0.0.1"},
			[]netip.Addr{netip.MustParseAddr("10.0.0.1")},
		},
		"link-local":      {[]string{"169.254.20.10", "127.0.0.1"}, []netip.Addr{netip.MustParseAddr("169.254.20.10")}},
		"loopback":        {[]string{"127.0.0.1", "fe80::1%lo"}, []netip.Addr{netip.MustParseAddr("127.0.0.1")}},
		"none with sense": {[]string{"fe80::1%lo"}, nil},
	} {
		if got := localAddresses(test.hosts); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
