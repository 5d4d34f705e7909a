// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// importsOf waits until exactly these services of a namespace are imported.
func (c *cluster) importsOf(t testing.TB, namespace, want string) {
	t.Helper()
	eventually(t, "imports in "+c.Name(), func(ctx context.Context) error {
		list, err := c.mcs.MulticlusterV1beta1().ServiceImports(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var names []string
		for _, each := range list.Items {
			names = append(names, each.Name)
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != want {
			return fmt.Errorf("got %q, want %q", got, want)
		}
		return nil
	})
}

// alone waits until a cluster publishes nothing of what other tests exported.
func (c *cluster) alone(t testing.TB) {
	t.Helper()
	eventually(t, "nothing of other tests", func(ctx context.Context) error {
		list, err := c.DiscoveryV1().EndpointSlices(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: export.LabelSourceCluster})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d slices", len(list.Items))
		}
		return err
	})
}

// overLimit waits for an Event on the Secret of the member and for the metric.
func (c *cluster) overLimit(t testing.TB, secret *corev1.Secret, limit export.Limit, over bool) {
	t.Helper()
	reason, value := controller.EventMemberWithinLimits, 0.0
	if over {
		reason, value = controller.EventMemberOverLimit, 1
	}
	eventually(t, string(limit)+" is told", c.metric(t, "clusterset_controller_member_over_limit", map[string]string{"cluster": "west", "limit": string(limit)}, value))
	eventually(t, "event", c.event(secret, reason))
}

// TestMemberOverItsLimits: what is imported stays and follows its changes, what
// is beyond a limit is left out and told of, and takes its place once there is
// room.
func TestMemberOverItsLimits(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	west.alone(t)
	west.start(t)
	demo := namespace(t, east, west)
	exported := func(name string, endpoints int) string {
		var addresses []string
		for i := range endpoints {
			addresses = append(addresses, fmt.Sprintf("10.65.9.%d", i+1))
		}
		return service(name, addresses...) + serviceExport(name)
	}
	seen := func(name, want string) {
		t.Helper()
		expect(t, key(demo, name), "ClusterSetIP of west Ready ["+want+"]", east)
	}
	count := func(name string, want int) {
		t.Helper()
		eventually(t, "endpoints of "+name, func(ctx context.Context) error {
			list, err := east.slicesOf(ctx, key(demo, name))
			if err != nil {
				return err
			}
			got := 0
			for _, slice := range list {
				got += len(slice.Endpoints)
			}
			if got != want {
				return fmt.Errorf("%d, want %d", got, want)
			}
			return nil
		})
	}
	east.join(t, west)
	secret, err := east.CoreV1().Secrets(system).Get(t.Context(), "member-west", metav1.GetOptions{})
	must(t, err)
	east.options.MemberLimits = export.Limits{Services: 3, Endpoints: 20, SliceBytes: 16 << 10}
	stop := east.start(t)

	west.create(t, demo, exported("c", 1)+exported("d", 1)+exported("e", 1))
	east.importsOf(t, demo, "c d e")
	west.create(t, demo, exported("a", 1))
	expect(t, key(demo, "a"), "ClusterSetIP of west Ready [west/10.65.9.1]", west)
	east.overLimit(t, secret, export.LimitServices, true)
	west.create(t, demo, endpoints("c", "10.65.8.1", "10.65.8.2"))
	seen("c", "west/10.65.8.1 west/10.65.8.2")

	// A restart imports the same ones, though others come first by name.
	stop()
	east.start(t)
	east.overLimit(t, secret, export.LimitServices, true)
	east.importsOf(t, demo, "c d e")
	west.unexport(t, key(demo, "d"))
	east.importsOf(t, demo, "a c e")
	east.overLimit(t, secret, export.LimitServices, false)

	// Too many endpoints: what is new waits, what is known changes.
	west.create(t, demo, exported("e", 17))
	count("e", 17)
	west.create(t, demo, exported("e", 18))
	east.overLimit(t, secret, export.LimitEndpoints, true)
	west.create(t, demo, endpoints("c", "10.65.8.3", "10.65.8.4"))
	seen("c", "west/10.65.8.3 west/10.65.8.4")
	west.create(t, demo, endpoints("c", "10.65.8.3"))
	seen("c", "west/10.65.8.3")
	count("e", 18)
	east.overLimit(t, secret, export.LimitEndpoints, false)

	// Too large a slice: what was known of it stays.
	west.create(t, demo, strings.Replace(serviceExport("c"), "metadata: {name: c}",
		"metadata: {name: c}\nspec: {exportedAnnotations: {note: "+strings.Repeat("x", 20<<10)+"}}", 1))
	east.overLimit(t, secret, export.LimitSliceBytes, true)
	west.create(t, demo, endpoints("c", "10.65.8.5"))
	expect(t, key(demo, "c"), "ClusterSetIP of west Ready [west/10.65.8.5]", west)
	seen("c", "west/10.65.8.3")
	west.create(t, demo, strings.Replace(serviceExport("c"), "metadata: {name: c}", "metadata: {name: c}\nspec: {exportedAnnotations: {note: short}}", 1))
	seen("c", "west/10.65.8.5")
	east.overLimit(t, secret, export.LimitSliceBytes, false)
}

// TestHostileMember: an API server that is full of slices of its member's id
// costs no more than the limits allow, and keeps nobody else's changes back.
func TestHostileMember(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	west.alone(t)
	demo := namespace(t, east, west)
	endpoint := discoveryv1.Endpoint{Addresses: []string{"10.65.0.1"}}
	const each, limit = 200, 1000 // endpoints
	many := make([]discoveryv1.Endpoint, each)
	for i := range many {
		many[i] = endpoint
	}
	put := func(i int) {
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("hostile-%d", i),
				Labels: map[string]string{
					export.LabelService: fmt.Sprintf("s%d", i), export.LabelSourceCluster: "west",
				},
				Annotations: map[string]string{export.AnnotationSnapshotPrefix + "v1": strings.Repeat("[", 100<<10)},
			},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   many,
		}
		_, err := west.DiscoveryV1().EndpointSlices(demo).Create(t.Context(), slice, metav1.CreateOptions{})
		must(t, err)
	}
	const before, meanwhile = 40, 10 // slices
	for i := range before {
		put(i)
	}
	west.start(t)
	east.options.MemberLimits = export.Limits{Services: 25, Endpoints: limit}
	east.join(t, west)
	east.start(t)
	secret, err := east.CoreV1().Secrets(system).Get(t.Context(), "member-west", metav1.GetOptions{})
	must(t, err)
	east.overLimit(t, secret, export.LimitEndpoints, true)
	within := func() {
		t.Helper()
		got, err := east.gather("clusterset_controller_member_endpointslices", map[string]string{"cluster": "west"})
		must(t, err)
		if held := got.GetGauge().GetValue(); held == 0 || held > limit/each {
			t.Errorf("%v slices of %d endpoints are held", held, each)
		}
	}
	within()
	for i := range meanwhile {
		put(before + i)
		east.create(t, demo, service("own", fmt.Sprintf("10.64.0.%d", i+1))+serviceExport("own"))
		expect(t, key(demo, "own"), fmt.Sprintf("ClusterSetIP of east Ready [east/10.64.0.%d]", i+1), east)
	}
	within()
	must(t, west.DiscoveryV1().EndpointSlices(demo).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	west.create(t, demo, service("web", "10.65.0.10")+serviceExport("web"))
	expect(t, key(demo, "web"), "ClusterSetIP of west Ready [west/10.65.0.10]", east)
	east.overLimit(t, secret, export.LimitEndpoints, false)
}
