// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/utils/ptr"
)

// proxy plays kube-proxy, until the test ends: packets that are forwarded to a ClusterIP go to the ready endpoints in turn,
// with the same port. The API server is reached at the ClusterIP of the Service kubernetes without it.
func (c *cluster) proxy(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	factory := informers.NewSharedInformerFactory(c.Client(), 0)
	services, endpoints := factory.Core().V1().Services().Lister(), factory.Discovery().V1().EndpointSlices().Lister()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	var group sync.WaitGroup
	group.Go(func() {
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		for written := ""; ctx.Err() == nil; <-ticker.C {
			all, failed := services.List(labels.Everything())
			behind, err := endpoints.List(labels.Everything())
			if err = errors.Join(failed, err); err == nil {
				written, err = c.translate(ctx, all, behind, written)
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

// translate returns the rules, and writes them unless they are written. Connectionless clients choose again if their
// endpoint is gone.
func (c *cluster) translate(ctx context.Context, services []*corev1.Service, endpoints []*discoveryv1.EndpointSlice,
	written string,
) (string, error) {
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
	var there, back []string                        // rules, and those for pods that reach themselves through a Service
	targets := map[netip.Addr]map[netip.Addr]bool{} // by ClusterIP
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
			back = append(back, fmt.Sprintf("ip saddr %[1]s ip daddr %[1]s masquerade\n", address))
		}
		there = append(there, fmt.Sprintf("ip daddr %s dnat to numgen inc mod %d map { %s }\n", ip, len(choices),
			strings.Join(choices, ", ")))
	}
	slices.Sort(there)
	slices.Sort(back)
	rules := fmt.Sprintf("table ip %[1]s\ndelete table ip %[1]s\ntable ip %[1]s {\n"+
		"chain prerouting {\ntype nat hook prerouting priority dstnat\n%[2]s}\n"+
		"chain postrouting {\ntype nat hook postrouting priority srcnat\n%[3]s}\n}\n",
		"services-"+c.Name(), strings.Join(there, ""), strings.Join(slices.Compact(back), ""))
	if rules == written {
		return rules, nil
	}
	command := exec.CommandContext(ctx, "nft", "-f", "-")
	command.Stdin = strings.NewReader(rules)
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("nft: %w\n%s", err, output)
	}
	return rules, router.Forget(func(asked, answers netip.Addr) bool {
		left, known := targets[asked]
		return known && !left[answers]
	})
}
