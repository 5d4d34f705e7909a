// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/test/datapath/tally"
)

// tiers: east is used before west, and west before north, which has no tier. The next tier answers immediately, because
// kube-proxy uses its endpoints if no other one is ready.
func tiers(t *testing.T, b *bed) {
	s := service{
		namespace: b.namespace(t), name: "ordered", ports: http80,
		annotations: map[string]string{"clusterset-dns.github.io/prefer": "east > west"},
	}
	var pods []*pod
	for _, c := range b.all() {
		pods = append(pods, c.deploy(t, s, 1)...)
	}
	for _, c := range []*cluster{b.east, b.west} {
		c.client(t, s.namespace, 0).reaches(t, 200, "tcp4", s.at(80), pods[0])
	}
	watched := b.north.client(t, s.namespace, 0).watch(t, lossless, s.at(80))
	watched.only(t, time.Now(), "east")
	for i, next := range []string{"west", "north"} {
		failed := pods[i].setReady(t, false)
		away := watched.only(t, failed, next)
		watched.intact(t, failed, "only "+next+" after "+seconds(away))
	}
	pods[0].setReady(t, true)
	watched.only(t, time.Now(), "east")
}

// many is how many endpoints a cluster needs for the remaining share if another cluster has one endpoint and one percent.
const many = 99

// weights: a service moves from east to west in steps. Each cluster has many endpoints: addresses of one pod.
func weights(t *testing.T, b *bed) {
	s := service{namespace: b.namespace(t), name: "canary", ports: http80}
	b.east.deployMany(t, s)
	b.west.deployMany(t, s)
	client := b.north.client(t, s.namespace, 0)
	watched := client.watch(t, lossless, s.at(80))
	watched.only(t, time.Now(), "east", "west")
	begin := time.Now()
	var open *stream
	for _, step := range []struct {
		percent, ready int
	}{{1, many + 1}, {10, many + 11}, {50, 2 * many}, {100, many}, {0, many}} {
		for _, c := range []*cluster{b.east, b.west} {
			c.patchExport(t, s, `{"spec":{"exportedAnnotations":{"clusterset-dns.github.io/weights":"west=%d"}}}`, step.percent)
		}
		b.north.awaitEndpoints(t, s, step.ready, nil)
		asked := float64(step.percent) / 100
		// Each share is within six standard deviations of this many random choices.
		const count = 4000
		var counted tally.Attempts
		var share float64
		eventually(t, "kube-proxy to have the shares", func(ctx context.Context) (err error) {
			if counted, err = client.connect(ctx, count, lossless, "tcp4", s.at(80)); err != nil {
				return err
			}
			share = float64(counted.Clusters()["west"]) / count
			if off := 6 * math.Sqrt(asked*(1-asked)/count); counted.Lost() > 0 || math.Abs(share-asked) > off {
				return fmt.Errorf("west is to have %d %%: %s", step.percent, counted)
			}
			return nil
		})
		t.Logf("weights west=%d: west has %.1f %%: %s", step.percent, 100*share, counted)
		if step.percent == 50 {
			open = client.keepWith(t, b.east, "tcp4", s.at(80))
		}
		if step.percent == 100 {
			open.stays(t, b.east, "new connections go to west")
		}
	}
	watched.intact(t, begin, "weights from 1 % to 100 % and back")
}

// deployMany exports a Service whose endpoints are many addresses of one pod.
func (c *cluster) deployMany(t testing.TB, s service) {
	p := c.pod(t, podSpec{namespace: s.namespace, name: s.name, serve: []string{"tcp:8080"}})
	base := c.nodes[0].pods[0].Masked().Addr().As4()
	const first = 128 // far from the addresses of pods
	base[3] = first
	must(t, c.nodes[0].Route(p.addresses[0], netip.PrefixFrom(netip.AddrFrom4(base), 25)))
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: s.name, Labels: map[string]string{discoveryv1.LabelServiceName: s.name},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{{
			Name: ptr.To("http"), Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To[int32](8080),
		}},
	}
	var addresses []netip.Addr
	for i := range many {
		base[3] = byte(first + i)
		address := netip.AddrFrom4(base)
		addresses = append(addresses, address)
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address.String()}})
	}
	must(t, p.AddAddress(addresses...))
	s.change = func(object *corev1.Service) { object.Spec.Selector = nil }
	if c.bed.networks {
		nodes := c.addNodes(t)
		for i := range slice.Endpoints {
			slice.Endpoints[i].NodeName = &nodes[i]
		}
		s.change = func(object *corev1.Service) {
			object.Spec.Selector, object.Spec.Type = nil, corev1.ServiceTypeNodePort
			object.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		}
	}
	_, err := c.DiscoveryV1().EndpointSlices(s.namespace).Create(t.Context(), slice, metav1.CreateOptions{})
	must(t, err)
	c.export(t, s)
}

// patchExport applies a merge patch to the export.
func (c *cluster) patchExport(t testing.TB, s service, format string, values ...any) {
	c.patch(t, "serviceexports.v1beta1.multicluster.x-k8s.io", s.namespace, s.name, fmt.Sprintf(format, values...))
}
