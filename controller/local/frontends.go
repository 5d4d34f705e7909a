// SPDX-License-Identifier: Apache-2.0

package local

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

const (
	// gatewaysEvery is how often Gateways are listed.
	gatewaysEvery = 3 * leastTTL
	// leastTTL and mostTTL bound the time until a name is resolved again, and resolvePatience bounds a resolution.
	leastTTL, mostTTL = 5 * time.Second, 5 * time.Minute
	resolvePatience   = 5 * time.Second
)

// Frontends has the addresses of the names of load balancers, and the Gateways with routes to Services of the route's namespace
// (Gateway API, v1). Known addresses and Gateways stay while they cannot be read again. All methods may be called concurrently.
type Frontends struct {
	// List lists the Gateways: see ListGateways.
	List func(context.Context) (map[types.NamespacedName][]export.Frontend, error)
	// Lookup resolves a name. It is called for several at once, and must return when its context ends.
	Lookup Lookup
	Clock  clock.WithTicker

	names    atomic.Pointer[map[question]resolved]
	gateways atomic.Pointer[map[types.NamespacedName][]export.Frontend]
}

// A Lookup returns the addresses of a name by its records of type dns.TypeA or dns.TypeAAAA, in any order, and their TTL.
type Lookup func(ctx context.Context, name string, kind uint16) ([]netip.Addr, time.Duration, error)

type question struct {
	name string
	kind uint16 // dns.TypeA or dns.TypeAAAA
}

// resolved has sorted addresses, and when they are due to be resolved again. failed counts failed lookups since an answer.
type resolved struct {
	addresses []netip.Addr
	due       time.Time
	failed    int
}

// known reports whether there was an answer, or three lookups failed: a resolver may answer for one family alone.
func (r resolved) known() bool { return !r.due.IsZero() || r.failed >= 3 }

// Addresses returns the sorted addresses of a name, and whether they are known. The list must not be changed.
func (f *Frontends) Addresses(name string) (addresses []netip.Addr, known bool) {
	all := ptr.Deref(f.names.Load(), nil)
	a, aaaa := all[question{name, dns.TypeA}], all[question{name, dns.TypeAAAA}]
	addresses = slices.Concat(a.addresses, aaaa.addresses)
	return addresses, len(addresses) > 0 && a.known() && aaaa.known()
}

// Gateways returns the Gateways with routes to a Service, and whether Gateways are known. The list must not be changed.
func (f *Frontends) Gateways(service types.NamespacedName) ([]export.Frontend, bool) {
	all := f.gateways.Load()
	return ptr.Deref(all, nil)[service], all != nil
}

// Run resolves the names that used returns, in any order, and lists Gateways if the empty name is among them, until the context
// ends. It calls changed after a change.
func (f *Frontends) Run(ctx context.Context, used func() []string, changed func()) {
	ticker := f.Clock.NewTicker(leastTTL)
	defer ticker.Stop()
	for listed := (time.Time{}); ; {
		names := slices.Compact(slices.Sorted(slices.Values(used())))
		if now := f.Clock.Now(); slices.Contains(names, "") && now.Sub(listed) > gatewaysEvery-leastTTL/2 {
			listed = now
			limited, cancel := context.WithTimeout(ctx, gatewaysEvery) // the answer may be lost
			all, err := f.List(limited)
			cancel()
			if err != nil {
				klog.FromContext(ctx).Error(err, "Cannot list Gateways and their routes; the last known ones stay")
			} else if before := f.gateways.Swap(&all); before == nil || !reflect.DeepEqual(*before, all) {
				changed()
			}
		}
		if f.resolve(ctx, names) {
			changed()
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// resolve resolves the names that are due, forgets names that are not in the list, and reports whether an address changed.
func (f *Frontends) resolve(ctx context.Context, names []string) (changed bool) {
	limited, cancel := context.WithTimeout(ctx, resolvePatience)
	defer cancel()
	before, after, now := ptr.Deref(f.names.Load(), nil), map[question]resolved{}, f.Clock.Now()
	var group sync.WaitGroup
	var mu sync.Mutex // guards after and changed
	for i := range 2 * len(names) {
		of := question{names[i/2], []uint16{dns.TypeA, dns.TypeAAAA}[i%2]}
		group.Go(func() {
			is := before[of]
			if of.name != "" && !now.Before(is.due) {
				addresses, ttl, err := f.Lookup(limited, of.name, of.kind)
				if err == nil {
					slices.SortFunc(addresses, netip.Addr.Compare)
					// The turn that is nearest to the end of the TTL.
					is = resolved{addresses: slices.Compact(addresses), due: now.Add(min(max(ttl, leastTTL), mostTTL) - leastTTL/2)}
				} else {
					is.failed++
					klog.FromContext(ctx).V(1).Info("Cannot resolve the name of a load balancer; its last known addresses stay", "name", of.name, "err", err)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			after[of], changed = is, changed || !slices.Equal(is.addresses, before[of].addresses) || is.known() != before[of].known()
		})
	}
	group.Wait()
	f.names.Store(&after)
	return changed
}

// LookUp returns a Lookup that queries a port of the name servers in a file such as /etc/resolv.conf.
func LookUp(file, port string) Lookup {
	return func(ctx context.Context, name string, kind uint16) (addresses []netip.Addr, _ time.Duration, err error) {
		config, err := dns.ClientConfigFromFile(file)
		if err != nil {
			return nil, 0, err
		}
		// Search domains of the pod are not used: they may belong to tenants.
		query := new(dns.Msg).SetQuestion(dns.Fqdn(name), kind)
		for i := range 2 * len(config.Servers) {
			server, network := config.Servers[i/2], []string{"udp", "tcp"}[i%2]
			answer, _, failed := (&dns.Client{Net: network}).ExchangeContext(ctx, query, net.JoinHostPort(server, port))
			if failed != nil || answer.Truncated || answer.Rcode != dns.RcodeSuccess {
				err = errors.Join(err, failed, fmt.Errorf("name server %s has no answer by %s", server, network))
				continue
			}
			ttl := uint32(math.MaxUint32)
			for _, record := range slices.Concat(answer.Answer, answer.Ns) { // some may be no addresses
				ttl = min(ttl, record.Header().Ttl)
				if address, err := netip.ParseAddr(dns.Field(record, 1)); err == nil {
					addresses = append(addresses, address.Unmap())
				}
			}
			return addresses, time.Duration(ttl) * time.Second, nil
		}
		return nil, 0, err
	}
}

// A gateway has the fields that are read of a Gateway.
type gateway struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Listeners []struct {
			Name, Protocol string
			Port           int32
		}
	}
	Status struct{ Addresses []struct{ Value string } }
}

// A reference names a Gateway or a Service, in the namespace of the route if it has none.
type reference struct {
	Kind, Namespace, Name, SectionName string
	Port                               int32
	Weight                             *int32
}

// A route has the fields that are read of a TCPRoute, TLSRoute or UDPRoute.
type route struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Rules []struct{ BackendRefs []reference }
	}
	Status struct {
		Parents []struct {
			ParentRef  reference
			Conditions []metav1.Condition
		}
	}
}

// backends are the backends of a route that are Services of its namespace. A backend of weight 0 gets no connections: clients
// would reach the pods of another Service.
func (r *route) backends() (services []reference) {
	for _, rule := range r.Spec.Rules {
		for _, each := range rule.BackendRefs {
			if cmp.Or(each.Kind, "Service") == "Service" && cmp.Or(each.Namespace, r.Namespace) == r.Namespace && ptr.Deref(each.Weight, 1) > 0 {
				services = append(services, each)
			}
		}
	}
	return services
}

// listens returns the ports of the listeners of a protocol through which a Gateway serves the route, if it accepted it.
func (r *route) listens(g *gateway, protocol string) (ports []int32) {
	for _, parent := range r.Status.Parents {
		of := parent.ParentRef
		if of.Name != g.Name || cmp.Or(of.Namespace, r.Namespace) != g.Namespace || cmp.Or(of.Kind, "Gateway") != "Gateway" ||
			!meta.IsStatusConditionTrue(parent.Conditions, "Accepted") {
			continue
		}
		for _, each := range g.Spec.Listeners {
			if each.Protocol == protocol && cmp.Or(of.SectionName, each.Name) == each.Name && cmp.Or(of.Port, each.Port) == each.Port {
				ports = append(ports, each.Port)
			}
		}
	}
	return ports
}

// ListGateways returns a function that lists the Gateways with routes to Services, in the order of the API server.
func ListGateways(client dynamic.Interface) func(context.Context) (map[types.NamespacedName][]export.Frontend, error) {
	return func(ctx context.Context) (map[types.NamespacedName][]export.Frontend, error) {
		gateways, err := listAs[gateway](ctx, client, "gateways")
		routes := map[string][]route{}
		for protocol, resource := range map[string]string{"TCP": "tcproutes", "TLS": "tlsroutes", "UDP": "udproutes"} {
			if err == nil {
				routes[protocol], err = listAs[route](ctx, client, resource)
			}
		}
		all := map[types.NamespacedName][]export.Frontend{}
		for i := range gateways {
			targets := map[types.NamespacedName][]export.Target{}
			for _, protocol := range []string{"TCP", "TLS", "UDP"} {
				for j := range routes[protocol] {
					each := &routes[protocol][j]
					for _, port := range each.listens(&gateways[i], protocol) {
						for _, backend := range each.backends() {
							service := types.NamespacedName{Namespace: each.Namespace, Name: backend.Name}
							targets[service] = append(targets[service], export.Target{
								Protocol: corev1.Protocol(strings.Replace(protocol, "TLS", "TCP", 1)), Number: backend.Port, Port: port,
							})
						}
					}
				}
			}
			for service, of := range targets {
				frontend := export.Frontend{Targets: of}
				for _, address := range gateways[i].Status.Addresses {
					frontend.Addresses = append(frontend.Addresses, address.Value)
				}
				all[service] = append(all[service], frontend)
			}
		}
		return all, err
	}
}

// listAs lists a resource of the Gateway API. It returns none if the API server does not serve the resource.
func listAs[T any](ctx context.Context, client dynamic.Interface, resource string) ([]T, error) {
	list, err := client.Resource(schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: resource}).
		List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var decoded struct{ Items []T }
	text, err := list.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(text, &decoded)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", resource, err)
	}
	return decoded.Items, err
}
