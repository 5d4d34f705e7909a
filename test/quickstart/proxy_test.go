// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// proxy plays kube-proxy, until the test ends: packets that are forwarded to a ClusterIP go to the ready endpoints in turn,
// with the same port. The API server is reached at the ClusterIP of the Service kubernetes without it.
func (c *cluster) proxy(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	factory := informers.NewSharedInformerFactory(c.Client(), 0)
	services, endpoints := factory.Core().V1().Services(), factory.Discovery().V1().EndpointSlices()
	changed := make(chan struct{}, 1)
	note := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	for _, informer := range []cache.SharedIndexInformer{services.Informer(), endpoints.Informer()} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { note() }, UpdateFunc: func(_, _ any) { note() }, DeleteFunc: func(any) { note() },
		})
		must(t, err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
			all, err := services.Lister().List(labels.Everything())
			if err == nil {
				var behind []*discoveryv1.EndpointSlice
				behind, err = endpoints.Lister().List(labels.Everything())
				err = errors.Join(err, c.translate(all, behind))
			}
			if err != nil && ctx.Err() == nil {
				t.Errorf("play kube-proxy of %s: %v", c.Name(), err)
				return
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
		group.Wait()
	})
}

// translate writes the rules, and has connectionless clients choose again if their endpoint is gone.
func (c *cluster) translate(services []*corev1.Service, endpoints []*discoveryv1.EndpointSlice) error {
	ready := map[types.NamespacedName]map[netip.Addr]bool{} // by Service
	for _, slice := range endpoints {
		name := types.NamespacedName{Namespace: slice.Namespace, Name: slice.Labels[discoveryv1.LabelServiceName]}
		for _, endpoint := range slice.Endpoints {
			if ready[name] == nil {
				ready[name] = map[netip.Addr]bool{}
			}
			if ptr.Deref(endpoint.Conditions.Ready, true) {
				ready[name][netip.MustParseAddr(endpoint.Addresses[0])] = true
			}
		}
	}
	var rules []string
	targets := map[netip.Addr]map[netip.Addr]bool{} // by ClusterIP
	own := map[string]bool{}                        // sources and targets of pods that reach themselves through a Service
	for _, service := range services {
		behind := ready[types.NamespacedName{Namespace: service.Namespace, Name: service.Name}]
		ip, err := netip.ParseAddr(service.Spec.ClusterIP)
		if err != nil || len(behind) == 0 || service.Namespace == metav1.NamespaceDefault {
			continue // headless, or nobody is there
		}
		targets[ip] = behind
		var choices []string
		for i, address := range slices.SortedFunc(maps.Keys(behind), netip.Addr.Compare) {
			choices = append(choices, fmt.Sprintf("%d : %s", i, address))
			own[fmt.Sprintf("%s . %s", address, address)] = true
		}
		rules = append(rules, fmt.Sprintf("ip daddr %s dnat to numgen inc mod %d map { %s }\n", ip, len(choices),
			strings.Join(choices, ", ")))
	}
	slices.Sort(rules)
	if len(own) > 0 {
		rules = append(rules, fmt.Sprintf(
			"}\nchain postrouting {\ntype nat hook postrouting priority srcnat\nip saddr . ip daddr { %s } masquerade\n",
			strings.Join(slices.Sorted(maps.Keys(own)), ", ")))
	}
	table := fmt.Sprintf("table ip %[1]s\ndelete table ip %[1]s\ntable ip %[1]s {\n"+
		"chain prerouting {\ntype nat hook prerouting priority dstnat\n%[2]s}\n}\n", "services-"+c.Name(), strings.Join(rules, ""))
	if table == c.table {
		return nil
	}
	if err := router.Filter(table); err != nil {
		return err
	}
	c.table = table
	// Forget reads all connections. Those that ended, which are most of them, would keep it busy for seconds, and pods
	// that are gone in the rules.
	if err := os.WriteFile("/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_time_wait", []byte("1"), 0o600); err != nil {
		return err
	}
	return router.Forget(func(asked, answers netip.Addr) bool {
		left, known := targets[asked]
		return known && !left[answers]
	})
}
