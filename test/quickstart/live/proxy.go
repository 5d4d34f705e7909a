// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// proxy plays kube-proxy for the Services of kube-system, until the test ends: packets that are forwarded to a ClusterIP
// go to the ready endpoints in turn, with the same port.
func (c *Cluster) proxy(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	factory := informers.NewSharedInformerFactoryWithOptions(c.Client(), 0,
		informers.WithNamespace(metav1.NamespaceSystem))
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
	result := make(chan error, 1)
	go func() {
		for {
			select {
			case <-ctx.Done():
				result <- nil
				return
			case <-changed:
			}
			all, err := services.Lister().List(labels.Everything())
			if err == nil {
				var behind []*discoveryv1.EndpointSlice
				behind, err = endpoints.Lister().List(labels.Everything())
				err = errors.Join(err, c.translate(ctx, all, behind))
			}
			if err != nil && ctx.Err() == nil {
				result <- err
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
		if err := <-result; err != nil {
			t.Errorf("play kube-proxy of %s: %v", c.Name(), err)
		}
	})
}

// translate writes the rules, and has connectionless clients choose again if their endpoint is gone.
func (c *Cluster) translate(ctx context.Context, services []*corev1.Service, endpoints []*discoveryv1.EndpointSlice) error {
	ready := map[string]map[netip.Addr]bool{} // by the name of the Service
	for _, slice := range endpoints {
		name := slice.Labels[discoveryv1.LabelServiceName]
		for _, endpoint := range slice.Endpoints {
			if ready[name] == nil {
				ready[name] = map[netip.Addr]bool{}
			}
			if ptr.Deref(endpoint.Conditions.Ready, true) {
				ready[name][netip.MustParseAddr(endpoint.Addresses[0])] = true
			}
		}
	}
	var rules strings.Builder
	targets := map[netip.Addr]map[netip.Addr]bool{} // by ClusterIP
	for _, service := range services {
		ip, err := netip.ParseAddr(service.Spec.ClusterIP)
		if err != nil || len(ready[service.Name]) == 0 {
			continue // headless, or nobody is there
		}
		targets[ip] = ready[service.Name]
		var choices []string
		for i, address := range slices.SortedFunc(maps.Keys(ready[service.Name]), netip.Addr.Compare) {
			choices = append(choices, fmt.Sprintf("%d : %s", i, address))
		}
		fmt.Fprintf(&rules, "ip daddr %s dnat to numgen inc mod %d map { %s }\n", ip, len(choices),
			strings.Join(choices, ", "))
	}
	command := exec.CommandContext(ctx, "nft", "-f", "-")
	command.Stdin = strings.NewReader(fmt.Sprintf("table ip %[1]s\ndelete table ip %[1]s\ntable ip %[1]s {\n"+
		"chain prerouting {\ntype nat hook prerouting priority dstnat\n%[2]s}\n}\n", "services-"+c.Name(), rules.String()))
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w\n%s", err, output)
	}
	return c.router.Forget(func(asked, answers netip.Addr) bool {
		left, known := targets[asked]
		return known && !left[answers]
	})
}
