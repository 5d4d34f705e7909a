// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// Wanted are the records that DNS is to answer with, or the name of a negative answer.
type Wanted func(context.Context) ([]string, error)

// Constant is an answer that is known.
func Constant(records ...string) Wanted {
	return func(context.Context) ([]string, error) { return records, nil }
}

// ImportIPs are the IPs of the import of shop/db.
func (c *Cluster) ImportIPs(ctx context.Context) ([]string, error) {
	imports := c.Dynamic().Resource(
		schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: "v1beta1", Resource: "serviceimports"})
	found, err := imports.Namespace("shop").Get(ctx, "db", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	ips, _, err := unstructured.NestedStringSlice(found.Object, "spec", "ips")
	if err == nil && len(ips) == 0 {
		err = fmt.Errorf("the import in %s has no IPs", c.Name())
	}
	return ips, err
}

// PodsOf are the addresses of the ready pods whose names begin so, in some clusters.
func PodsOf(prefix string, clusters ...*Cluster) Wanted {
	return func(ctx context.Context) ([]string, error) {
		var found []string
		for _, c := range clusters {
			pods, err := c.Client().CoreV1().Pods("shop").List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, err
			}
			for i := range pods.Items {
				if pod := &pods.Items[i]; strings.HasPrefix(pod.Name, prefix) && IsReady(pod) {
					found = append(found, pod.Status.PodIP)
				}
			}
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("no pod whose name begins with %s is ready", prefix)
		}
		return found, nil
	}
}

// IsReady tells whether a pod is ready, and not deleted.
func IsReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil &&
		slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
			return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
		})
}

// Resolvers are the addresses of the pods of the cluster's DNS.
func (c *Cluster) Resolvers(ctx context.Context) ([]string, error) {
	pods, err := c.Client().CoreV1().Pods(metav1.NamespaceSystem).List(ctx,
		metav1.ListOptions{LabelSelector: cluster.DNSSelector})
	if err != nil {
		return nil, err
	}
	var addresses []string
	for i := range pods.Items {
		if IsReady(&pods.Items[i]) {
			addresses = append(addresses, pods.Items[i].Status.PodIP)
		}
	}
	if len(addresses) != 2 {
		return nil, fmt.Errorf("%d of 2 pods of CoreDNS are ready", len(addresses))
	}
	return addresses, nil
}

// ExpectAnswer asks all pods of the cluster's DNS for the addresses of a name, until each gives those that are wanted.
func (c *Cluster) ExpectAnswer(t testing.TB, name string, want Wanted) {
	t.Helper()
	c.ExpectOf(t, c.Resolvers, name, want)
}

// ExpectOf asks these servers.
func (c *Cluster) ExpectOf(t testing.TB, servers Wanted, name string, want Wanted) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s in %s", name, c.Name()), func(ctx context.Context) error {
		records, err := want(ctx)
		if err != nil {
			return err
		}
		addresses, err := servers(ctx)
		if err != nil {
			return err
		}
		for _, server := range addresses {
			answer, err := cluster.DNSAt(server).Ask(ctx, name, "A")
			if err != nil {
				return err
			}
			if text := sorted(records); answer.Text() != text {
				return fmt.Errorf("%s answers %q, want %q", server, answer.Text(), text)
			}
		}
		return nil
	})
}

// sorted are records as an answer has them.
func sorted(records []string) string { return strings.Join(slices.Sorted(slices.Values(records)), " ") }

// States of an endpoint behind an import.
const (
	Used    = "used"
	Demoted = "demoted"
)

// ExpectEndpoints waits until the endpoints of shop/db in a cluster are the pods of some clusters, all in the state
// that is wanted of that cluster.
func (b *Bed) ExpectEndpoints(t testing.TB, c *Cluster, states map[string]string) {
	t.Helper()
	eventually(t, "endpoints in "+c.Name(), func(ctx context.Context) error {
		want := map[string]string{}
		for _, source := range b.Clusters {
			if states[source.Name()] == "" {
				continue
			}
			addresses, err := PodsOf("db", source)(ctx)
			if err != nil {
				return err
			}
			for _, address := range addresses {
				want[address] = states[source.Name()]
			}
		}
		list, err := c.Client().DiscoveryV1().EndpointSlices("shop").List(ctx,
			metav1.ListOptions{LabelSelector: export.LabelService + "=db"})
		if err != nil {
			return err
		}
		got := map[string]string{}
		for i := range list.Items {
			for _, endpoint := range list.Items[i].Endpoints {
				got[endpoint.Addresses[0]] = state(endpoint.Conditions)
			}
		}
		if !maps.Equal(got, want) {
			return fmt.Errorf("got %v, want %v", got, want)
		}
		return nil
	})
}

func state(conditions discoveryv1.EndpointConditions) string {
	ready, serving, terminating := ptr.Deref(conditions.Ready, true), ptr.Deref(conditions.Serving, true),
		ptr.Deref(conditions.Terminating, false)
	switch {
	case ready && serving && !terminating:
		return Used
	case !ready && serving && terminating:
		return Demoted
	}
	return fmt.Sprintf("ready %t, serving %t, terminating %t", ready, serving, terminating)
}
