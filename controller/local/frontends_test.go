// SPDX-License-Identifier: Apache-2.0

package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// gatewayObjects returns a client with the objects of a text, in YAML and separated by lines of dashes.
func gatewayObjects(t *testing.T, text string) *dynamicfake.FakeDynamicClient {
	t.Helper()
	kinds := map[schema.GroupVersionResource]string{}
	for resource, kind := range map[string]string{"gateways": "Gateway", "tcproutes": "TCPRoute", "udproutes": "UDPRoute", "tlsroutes": "TLSRoute"} {
		kinds[schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: resource}] = kind + "List"
	}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds)
	for document := range strings.SplitSeq(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal([]byte("apiVersion: gateway.networking.k8s.io/v1\n"+document), object))
		for resource, kind := range kinds {
			if kind != object.GetKind()+"List" {
				continue
			}
			must(t, client.Tracker().Create(resource, object, object.GetNamespace()))
		}
	}
	return client
}

const gatewaysText = `kind: Gateway
metadata: {namespace: edge, name: shared}
spec: {listeners: [{name: db, protocol: TCP, port: 5432}, {name: other, protocol: TCP, port: 6000}, {name: tls, protocol: TLS, port: 443}, {name: dns, protocol: UDP, port: 53}]}
status: {addresses: [{type: IPAddress, value: 203.0.113.7}, {type: Hostname, value: lb.example.org}]}
---
kind: Gateway
metadata: {namespace: shop, name: own}
spec: {listeners: [{name: tls, protocol: TLS, port: 8443}]}
---
kind: TCPRoute
metadata: {namespace: shop, name: db}
spec: {rules: [{backendRefs: [{name: db, port: 5432}, {name: db, namespace: elsewhere, port: 1}, {name: db, kind: Backend, port: 2}, {name: next, port: 5432, weight: 0}]}]}
status: {parents: [{parentRef: {name: shared, namespace: edge, sectionName: db}, conditions: [{type: Accepted, status: "True"}]}]}
---
kind: TCPRoute
metadata: {namespace: shop, name: refused}
spec: {rules: [{backendRefs: [{name: refused, port: 80}]}]}
status: {parents: [{parentRef: {name: shared, namespace: edge}, conditions: [{type: Accepted, status: "False"}]}]}
---
kind: TCPRoute
metadata: {namespace: shop, name: to-a-service}
spec: {rules: [{backendRefs: [{name: db, port: 3}]}]}
status: {parents: [{parentRef: {kind: Service, name: shared, namespace: edge}, conditions: [{type: Accepted, status: "True"}]}]}
---
kind: TLSRoute
metadata: {namespace: shop, name: web}
spec: {rules: [{backendRefs: [{name: web, port: 443}]}]}
status: {parents: [{parentRef: {name: own}, conditions: [{type: Accepted, status: "True"}]}, {parentRef: {name: shared, namespace: edge}, conditions: [{type: Accepted, status: "True"}]}]}
---
kind: UDPRoute
metadata: {namespace: shop, name: db}
spec: {rules: [{backendRefs: [{name: db, port: 53}]}]}
status: {parents: [{parentRef: {name: shared, namespace: edge, port: 53}, conditions: [{type: Accepted, status: "True"}]}]}`

// TestGateways: Gateways are unknown until they were listed with their routes, and known Gateways stay if a list fails. They are
// listed again, although the answer to a list never came.
func TestGateways(t *testing.T) {
	shared := []string{"203.0.113.7", "lb.example.org"}
	want := map[types.NamespacedName][]export.Frontend{
		{Namespace: "shop", Name: "db"}: {{Addresses: shared, Targets: []export.Target{
			{Protocol: "TCP", Number: 5432, Port: 5432}, {Protocol: "UDP", Number: 53, Port: 53},
		}}},
		{Namespace: "shop", Name: "web"}: {
			{Addresses: shared, Targets: []export.Target{{Protocol: "TCP", Number: 443, Port: 443}}},
			{Targets: []export.Target{{Protocol: "TCP", Number: 443, Port: 8443}}},
		},
	}
	synctest.Test(t, func(t *testing.T) {
		var available atomic.Bool
		var changes atomic.Int64
		client := gatewayObjects(t, gatewaysText)
		client.PrependReactor("list", "udproutes", func(clienttesting.Action) (bool, runtime.Object, error) {
			return !available.Load(), nil, errors.New("unavailable")
		})
		lists := 0
		f := &Frontends{Clock: clock.RealClock{}, List: func(ctx context.Context) (map[types.NamespacedName][]export.Frontend, error) {
			if lists++; lists == 1 {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return ListGateways(client)(ctx)
		}}
		ctx, cancel := context.WithCancel(t.Context())
		go f.Run(ctx, func() []string { return []string{""} }, func() { changes.Add(1) })
		for i, row := range []struct{ available, known bool }{{false, false}, {true, true}, {false, true}, {true, true}} {
			available.Store(row.available)
			<-time.After(gatewaysEvery + time.Second)
			synctest.Wait()
			for service, want := range want {
				got, known := f.Gateways(service)
				if known != row.known || known && !reflect.DeepEqual(got, want) || known != (changes.Load() == 1) {
					t.Errorf("%d: after %d changes, %s has %v, %t, want %v", i, changes.Load(), service, got, known, want)
				}
			}
			for _, name := range []string{"refused", "next"} {
				if got, _ := f.Gateways(types.NamespacedName{Namespace: "shop", Name: name}); len(got) > 0 {
					t.Errorf("%d: no route has the backend %s, but it has %v", i, name, got)
				}
			}
		}
		cancel()
	})
}

// TestNames: a name is unknown until each family was answered or failed three times, and then resolved again when its TTL ends.
// The addresses of a family stay while it cannot be resolved. Slow names delay others by one resolvePatience.
func TestNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answer atomic.Value // addresses, and "fails" for an error
		var ttl, asked, changes, unused atomic.Int64
		f := &Frontends{Clock: clock.RealClock{}, Lookup: func(ctx context.Context, name string, kind uint16) (addresses []netip.Addr, _ time.Duration, err error) {
			if name == "slow" {
				<-ctx.Done()
				return nil, 0, ctx.Err()
			}
			if kind == dns.TypeA {
				asked.Add(1)
			}
			for _, each := range strings.Fields(answer.Load().(string)) {
				if each == "fails" || each == "v4-fails" && kind == dns.TypeA {
					return nil, 0, errors.New("no such host")
				}
				if address, err := netip.ParseAddr(each); err == nil && address.Is4() == (kind == dns.TypeA) {
					addresses = append(addresses, address)
				}
			}
			return addresses, time.Duration(ttl.Load()) * time.Second, err
		}}
		ctx, cancel := context.WithCancel(t.Context())
		answer.Store("v4-fails 2001:db8::9")
		go f.Run(ctx, func() []string { return [][]string{{"lb", "lb"}, {}, {"slow", "lb"}}[unused.Load()] }, func() { changes.Add(1) })
		<-time.After(time.Second)
		for _, row := range []struct {
			answer, want        string // want has the addresses, and whether they are known
			ttl, seconds        int64  // the answer is valid for, and how long it may take
			changes, asked, now int64  // now is the case of the names that are used
		}{
			{"v4-fails 2001:db8::9", "[2001:db8::9] false", 1, 5, 1, 1, 0},
			{"v4-fails 2001:db8::9", "[2001:db8::9] true", 1, 5, 2, 1, 0},
			{"203.0.113.8 203.0.113.7 203.0.113.8", "[203.0.113.7 203.0.113.8] true", 30, 5, 3, 1, 0},
			{"203.0.113.9", "[203.0.113.7 203.0.113.8] true", 30, 28, 3, 0, 0},
			{"203.0.113.9", "[203.0.113.9] true", 1, 2, 4, 1, 0},
			{"203.0.113.9", "[203.0.113.9] true", 1, 20, 4, 4, 0},
			{"fails", "[203.0.113.9] true", 60, 20, 4, 4, 0},
			{"", "[] false", 1, 5, 5, 1, 0},
			{"2001:db8::9 203.0.113.9", "[203.0.113.9 2001:db8::9] true", 1, 5, 6, 1, 0},
			{"2001:db8::8 v4-fails", "[203.0.113.9 2001:db8::8] true", 1, 5, 7, 1, 0},
			{"203.0.113.7", "[203.0.113.7] true", 1, 5, 8, 1, 0},
			{"203.0.113.7", "[203.0.113.7] true", 3600, 5, 8, 1, 0},
			{"203.0.113.7", "[203.0.113.7] true", 3600, 605, 8, 2, 0},
			{"203.0.113.7", "[] false", 0, 5, 8, 0, 1},
			{"203.0.113.6", "[203.0.113.6] true", 0, 10, 9, 2, 2},
		} {
			answer.Store(row.answer)
			ttl.Store(row.ttl)
			unused.Store(row.now)
			asked.Store(0)
			<-time.After(time.Duration(row.seconds) * time.Second)
			synctest.Wait()
			addresses, known := f.Addresses("lb")
			if got := fmt.Sprint(addresses, known); got != row.want || changes.Load() != row.changes || asked.Load() != row.asked {
				t.Errorf("%+v: got %s after %d changes, asked %d times", row, got, changes.Load(), asked.Load())
			}
		}
		cancel()
	})
}

// TestLookUp asks real name servers, the first of which does not know the name.
func TestLookUp(t *testing.T) {
	records := map[string][]string{
		"A":    {"lb.example.org. 60 CNAME lb.example.net.", "lb.example.net. 20 A 203.0.113.7", "lb.example.net. 40 A 203.0.113.8"},
		"AAAA": {"lb.example.org. 30 AAAA 2001:db8::7"},
	}
	var file strings.Builder
	port := ""
	for i, host := range []string{"127.0.0.1", "127.0.0.2"} {
		handler := dns.HandlerFunc(func(w dns.ResponseWriter, query *dns.Msg) {
			reply := new(dns.Msg).SetReply(query)
			kind := dns.TypeToString[query.Question[0].Qtype]
			switch _, udp := w.RemoteAddr().(*net.UDPAddr); {
			case i == 0, query.Question[0].Name == "v4.example.org." && kind == "AAAA":
				reply.Rcode = dns.RcodeServerFailure
			case udp && kind == "A":
				reply.Truncated = true
			default:
				for _, text := range records[kind] {
					record, err := dns.NewRR(text)
					if err != nil {
						t.Error(err)
					}
					reply.Answer = append(reply.Answer, record)
				}
			}
			_ = w.WriteMsg(reply)
		})
		listener, err := net.Listen("tcp", net.JoinHostPort(host, cmp.Or(port, "0")))
		must(t, err)
		_, port, _ = net.SplitHostPort(listener.Addr().String())
		packets, err := net.ListenPacket("udp", net.JoinHostPort(host, port))
		must(t, err)
		for _, server := range []*dns.Server{{Listener: listener, Handler: handler}, {PacketConn: packets, Handler: handler}} {
			go func() { _ = server.ActivateAndServe() }()
			t.Cleanup(func() { _ = server.Shutdown() })
		}
		fmt.Fprintf(&file, "nameserver %s\n", host)
	}
	path := filepath.Join(t.TempDir(), "resolv.conf")
	must(t, os.WriteFile(path, []byte(file.String()), 0o600))
	for question, want := range map[string]string{
		"lb.example.org A":    "[203.0.113.7 203.0.113.8] 20s",
		"lb.example.org AAAA": "[2001:db8::7] 30s",
		"v4.example.org AAAA": "[] 0s",
	} {
		name, kind, _ := strings.Cut(question, " ")
		addresses, ttl, err := LookUp(path, port)(t.Context(), name, dns.StringToType[kind])
		if fmt.Sprint(addresses, ttl) != want || (err != nil) != (len(addresses) == 0) {
			t.Errorf("%s: got %v, %s, %v", question, addresses, ttl, err)
		}
	}
}
