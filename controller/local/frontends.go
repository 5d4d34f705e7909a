// SPDX-License-Identifier: Apache-2.0

package local

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

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
	// frontendsEvery is how often names are resolved and Gateways listed: the TTLs of load balancers' names are longer.
	frontendsEvery = 15 * time.Second
	// resolvePatience bounds the resolution of one name.
	resolvePatience = 5 * time.Second
)

// Frontends are the addresses of the names of load balancers, and the Gateways with routes to Services of their namespace (Gateway
// API, v1). What is known of a name or of all Gateways stays while it cannot be read. All methods may be called concurrently.
type Frontends struct {
	Client dynamic.Interface
	// Lookup returns the addresses of a name; nil means that of net.DefaultResolver.
	Lookup func(ctx context.Context, name string) ([]netip.Addr, error)
	Clock  clock.WithTicker

	names    atomic.Pointer[map[string][]netip.Addr]
	gateways atomic.Pointer[map[types.NamespacedName][]export.Frontend]
}

// Addresses returns the sorted addresses of a name, and whether they are known. The list must not be changed.
func (f *Frontends) Addresses(name string) (addresses []netip.Addr, known bool) {
	addresses, known = ptr.Deref(f.names.Load(), nil)[name]
	return addresses, known
}

// Gateways returns the Gateways with routes to a Service, and whether Gateways are known. The list must not be changed.
func (f *Frontends) Gateways(service types.NamespacedName) ([]export.Frontend, bool) {
	all := f.gateways.Load()
	return ptr.Deref(all, nil)[service], all != nil
}

// Run resolves the names that used returns, and lists Gateways if it says so, until the context ends. It calls changed after
// a change.
func (f *Frontends) Run(ctx context.Context, used func() (names []string, gateways bool), changed func()) {
	ticker := f.Clock.NewTicker(frontendsEvery)
	defer ticker.Stop()
	for {
		names, wanted := used()
		if wanted {
			now, err := f.readGateways(ctx)
			if err != nil {
				klog.FromContext(ctx).Error(err, "Cannot list Gateways and their routes; the last known ones stay")
			} else if before := f.gateways.Swap(&now); before == nil || !reflect.DeepEqual(*before, now) {
				changed()
			}
		}
		now := map[string][]netip.Addr{}
		for _, name := range names {
			addresses, err := f.resolve(ctx, name)
			if len(addresses) == 0 {
				klog.FromContext(ctx).V(1).Info("Cannot resolve the name of a load balancer; its last known addresses stay", "name", name, "err", err)
				addresses, _ = f.Addresses(name)
			}
			if len(addresses) > 0 {
				now[name] = addresses
			}
		}
		if before := ptr.Deref(f.names.Swap(&now), nil); !maps.EqualFunc(before, now, slices.Equal) {
			changed()
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// resolve returns the sorted addresses of a name.
func (f *Frontends) resolve(ctx context.Context, name string) (addresses []netip.Addr, err error) {
	limited, cancel := context.WithTimeout(ctx, resolvePatience)
	defer cancel()
	if f.Lookup != nil {
		addresses, err = f.Lookup(limited, name)
	} else {
		// The dot ends a name: the search domains of a pod may belong to tenants.
		addresses, err = net.DefaultResolver.LookupNetIP(limited, "ip", strings.TrimSuffix(name, ".")+".")
	}
	for i := range addresses {
		addresses[i] = addresses[i].Unmap()
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	return slices.Compact(addresses), err
}

// A gateway is what is read of a Gateway.
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
}

// A route is what is read of a TCPRoute, TLSRoute or UDPRoute.
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

// backends are the backends of a route that are Services of its namespace.
func (r *route) backends() (services []reference) {
	for _, rule := range r.Spec.Rules {
		for _, each := range rule.BackendRefs {
			if (each.Kind == "" || each.Kind == "Service") && (each.Namespace == "" || each.Namespace == r.Namespace) {
				services = append(services, each)
			}
		}
	}
	return services
}

// listens returns the ports of the listeners of a protocol by which a Gateway serves a route that it accepted.
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

// readGateways returns the Gateways with routes to Services, in the order of the API server.
func (f *Frontends) readGateways(ctx context.Context) (map[types.NamespacedName][]export.Frontend, error) {
	gateways, err := listAs[gateway](ctx, f.Client, "gateways")
	routes := map[string][]route{}
	for protocol, resource := range map[string]string{"TCP": "tcproutes", "TLS": "tlsroutes", "UDP": "udproutes"} {
		if err == nil {
			routes[protocol], err = listAs[route](ctx, f.Client, resource)
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

// listAs lists a resource of the Gateway API. There are none if the API server does not serve it.
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
