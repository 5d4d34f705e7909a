// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/port"
)

// reload restarts the server with another Corefile, as the reload plugin does, and waits until the new one serves.
func (s *server) reload(corefile string) {
	s.t.Helper()
	instance, err := s.instance.Restart(input(corefile))
	if err != nil {
		s.t.Fatal(err)
	}
	s.instance = instance
	s.serving()
}

// serving waits until the server serves: CoreDNS forgets one that is stopped before it has begun to.
func (s *server) serving() {
	s.t.Helper()
	for _, network := range []string{"udp", "tcp"} {
		s.exchange(network, new(dns.Msg).SetQuestion("clusterset.local.", dns.TypeSOA))
	}
}

func reloadable(address, kubeconfig, more string) string {
	return fmt.Sprintf(`.:%s {
		bind 127.0.0.1
		multicluster clusterset.local {
			kubeconfig %s
			%s
		}
	}`, address, kubeconfig, more)
}

// asker asks for a name hundreds of times a second and counts what is not answered as it should be.
type asker struct{ asked, lost atomic.Int64 }

func (a *asker) run(ctx context.Context, address, qname, want string) {
	client := dns.Client{Timeout: 20 * time.Second} // longer than any answer takes that is on its way
	pace := time.NewTicker(3 * time.Millisecond)
	defer pace.Stop()
	for ctx.Err() == nil {
		<-pace.C
		reply, _, err := client.Exchange(new(dns.Msg).SetQuestion(qname, dns.TypeA), address)
		a.asked.Add(1)
		if err != nil || textOf(reply) != want {
			a.lost.Add(1)
		}
	}
}

func web(ip string) string {
	return serviceImport("web", "{type: ClusterSetIP, ips: ["+ip+"], ports: []}")
}

const webName = "web.reloads.svc.clusterset.local."

func TestReloadsLoseNoAnswerWithOrWithoutTheAPIServer(t *testing.T) {
	cluster := clusters(t)[0]
	demo := namespace(t, cluster, "reloads")
	demo.apply(web("10.42.0.1"))
	demo.apply(serviceImport("pair", "{type: Headless, ports: []}") +
		endpointSlice("pair", "east", "IPv4", "[]", "{addresses: [10.1.0.1]}") +
		endpointSlice("pair", "west", "IPv4", "[]", "{addresses: [10.2.0.1]}"))
	config := admin(t, cluster)
	port := fmt.Sprint(freeAddress(t).Port())
	s := serve(t, reloadable(port, config, ""))
	s.until(webName, dns.TypeA, "10.42.0.1")
	before := soaSerial(t, s)

	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	a := new(asker)
	running.Go(func() { a.run(ctx, "127.0.0.1:"+port, webName, "10.42.0.1") })
	goroutines := watching()
	for i := range 20 {
		s.reload(reloadable(port, config, ""))
		if i == 10 {
			wait(t, func() error {
				if now := watching(); now > goroutines+few {
					return fmt.Errorf("reloads left %d goroutines, where there were %d", now, goroutines)
				}
				return nil
			})
			must(t, cluster.APIServer().Kill())
		}
	}
	if after := soaSerial(t, s); after != before {
		t.Errorf("reloads moved the serial from %d to %d, and changed no answer", before, after)
	}
	// Another watch, or other records of one, know nothing yet: the answers of the last Corefile stay.
	for _, other := range []string{
		"ttl 30", "prefer cluster\ncluster east", "labels a!=b", "namespaces other", "ttl 60\nprefer zone\ncluster west",
	} {
		s.reload(reloadable(port, config, "startup_timeout 1s\n"+other))
		s.expect("pair.reloads.svc.clusterset.local.", dns.TypeA, "10.1.0.1 10.2.0.1")
	}
	cancel()
	running.Wait()
	if lost, asked := a.lost.Load(), a.asked.Load(); lost > 0 || asked < 20 {
		t.Errorf("of %d queries %d were lost", asked, lost)
	}
	if got := s.query(webName, dns.TypeA).Answer[0].Header().Ttl; got != 5 {
		t.Errorf("the TTL is %d, want that of the last Corefile, 5", got)
	}
	must(t, cluster.APIServer().Start(t.Context()))
	demo.apply(web("10.42.0.2"))
	s.until(webName, dns.TypeA, "10.42.0.2")
	s.until("pair.reloads.svc.clusterset.local.", dns.TypeA, "10.2.0.1")
	if got := s.query(webName, dns.TypeA).Answer[0].Header().Ttl; got != 60 {
		t.Errorf("the TTL is %d, want 60", got)
	}
	// What the API server does not have is never known. The last answers stay, and follow changes.
	s.reload(reloadable(port, config, "groups net.gke.io"))
	s.expect(webName, dns.TypeA, "10.42.0.2")
	demo.apply(web("10.42.0.3"))
	s.until(webName, dns.TypeA, "10.42.0.3")
	s.reload(reloadable(port, config, "namespaces other"))
	s.until(webName, dns.TypeA, "NXDOMAIN")
}

func soaSerial(t *testing.T, s *server) uint32 {
	t.Helper()
	soa, ok := s.query("clusterset.local.", dns.TypeSOA).Answer[0].(*dns.SOA)
	if !ok {
		t.Fatal("no SOA record")
	}
	return soa.Serial
}

// freeAddress is an address of loopback that nothing listens at.
func freeAddress(t *testing.T) netip.AddrPort {
	t.Helper()
	address, err := port.Free()
	must(t, err)
	return address
}

func TestAReloadThatFailsLeavesNothingBehind(t *testing.T) {
	cluster := clusters(t)[0]
	namespace(t, cluster, "broken").apply(serviceImport("web", "{type: ClusterSetIP, ips: [10.42.0.1], ports: []}"))
	config := admin(t, cluster)
	for name, corefile := range map[string]func(port string) string{
		"of a server that has the plugin": func(port string) string { return reloadable(port, config, patient) },
		"of a server that has it not": func(port string) string {
			return ".:" + port + " {\n bind 127.0.0.1\n hosts {\n 10.42.0.1 web.broken.svc.clusterset.local\n }\n}"
		},
	} {
		t.Run(name, func(t *testing.T) {
			port := fmt.Sprint(freeAddress(t).Port())
			s := serve(t, corefile(port))
			s.expect("web.broken.svc.clusterset.local.", dns.TypeA, "10.42.0.1")
			held := heldImports(t)
			goroutines := watching()
			for i := range 10 {
				// The second server block cannot listen where the first does, after its plugin has begun to watch, for
				// itself.
				broken := reloadable(port, config, fmt.Sprintf("labels a!=b%d", i)) + "\nbroken.example:" + port +
					" {\n bind 192.0.2.1\n}"
				if _, err := s.instance.Restart(input(broken)); err == nil {
					t.Fatal("the reload did not fail")
				}
			}
			wait(t, func() error {
				if now := watching(); now > goroutines+few {
					return fmt.Errorf("failed reloads left %d goroutines that watch, where there were %d", now,
						goroutines)
				}
				if now := heldImports(t); now != held {
					return fmt.Errorf("failed reloads left %v imports, where there were %v", now, held)
				}
				return nil
			})
		})
	}
}

// few goroutines come and go with the requests that are on their way.
const few = 5

// watching is the number of goroutines that have to do with the plugin or with the API server.
func watching() (count int) {
	text := make([]byte, 1<<20)
	text = text[:runtime.Stack(text, true)]
	for stack := range strings.SplitSeq(string(text), "\n\n") {
		if strings.Contains(stack, "plugin/multicluster") || strings.Contains(stack, "k8s.io/client-go") ||
			strings.Contains(stack, "k8s.io/apimachinery") || strings.Contains(stack, "net/http") {
			count++
		}
	}
	return count
}
