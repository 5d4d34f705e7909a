// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/test/datapath/tally"
)

// tiers: east is used before west, and west before north, which has no tier. What comes next answers at once, because
// kube-proxy has it as the last resort.
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
		counted := c.client(t, s.namespace, 0).reaches(t, 200, "tcp4", s.at(80), pods[0])
		b.figures.add("east > west, from "+c.Name(), counted, "1 pod each")
	}
	client := b.north.client(t, s.namespace, 0)
	watched := client.watch(t, "tcp4", s.at(80))
	watched.only(t, time.Now(), "east")
	for i, next := range []string{"west", "north"} {
		failed := pods[i].setReady(t, false)
		away := watched.only(t, failed, next)
		counted := tally.New(watched.since(failed)...)
		if counted.Lost() > 0 {
			t.Errorf("connections were lost: %s", counted)
		}
		b.figures.add("east > west: "+b.all()[i].Name()+" is not ready", counted, "only "+next+" after "+seconds(away))
	}
	pods[0].setReady(t, true)
	back := watched.only(t, time.Now(), "east")
	b.figures.add("east > west: east is ready again", client.connect(t, 200, "tcp4", s.at(80)), "after "+seconds(back))
}

// border: north is not used by others, not even if nothing else is left.
func border(t *testing.T, b *bed) {
	s := service{
		namespace: b.namespace(t), name: "inside", ports: http80,
		annotations: map[string]string{"clusterset-dns.github.io/within": "east; west"},
	}
	east, north := b.east.deploy(t, s, 1), b.north.deploy(t, s, 1)
	b.north.client(t, s.namespace, 0).settled(t, "tcp4", s.at(80), east[0], north[0])
	client := b.west.client(t, s.namespace, 0)
	b.figures.add("within east; west, from west", client.reaches(t, 200, "tcp4", s.at(80), east...), "pods in east, north")
	east[0].setReady(t, false)
	eventually(t, "nothing to answer", func(ctx context.Context) error {
		counted, err := client.tryConnect(ctx, 10, "tcp4", s.at(80), "-timeout", "2s")
		if err == nil && counted.Answered() > 0 {
			err = fmt.Errorf("%s", counted)
		}
		return err
	})
	counted, err := client.tryConnect(t.Context(), 50, "tcp4", s.at(80), "-timeout", "2s")
	must(t, err)
	if counted.Answered() > 0 {
		t.Errorf("with nothing left inside: %s", counted)
	}
	b.figures.add("within east; west: nothing is left", counted, "")
	east[0].setReady(t, true)
	client.settled(t, "tcp4", s.at(80), east...)
}

// many is how many endpoints of a cluster a share of one percent takes beside one of another.
const many = 99

// weights: a service moves from east to west in steps. Each cluster has many endpoints, which are addresses of one pod.
func weights(t *testing.T, b *bed) {
	s := service{namespace: b.namespace(t), name: "canary", ports: http80}
	b.east.deployMany(t, s)
	b.west.deployMany(t, s)
	client := b.north.client(t, s.namespace, 0)
	watched := client.watch(t, "tcp4", s.at(80))
	watched.only(t, time.Now(), "east", "west")
	begin := time.Now()
	var open *connection
	for _, step := range []struct {
		percent, ready int
	}{{1, many + 1}, {10, many + 11}, {50, 2 * many}, {100, many}, {0, many}} {
		for _, c := range []*cluster{b.east, b.west} {
			c.annotateExport(t, s, "clusterset-dns.github.io/weights", fmt.Sprintf("west=%d", step.percent))
		}
		b.north.awaitEndpoints(t, s, step.ready)
		asked := float64(step.percent) / 100
		// A share is as asked to six standard deviations of as many choices.
		const count = 4000
		var counted *tally.Tally
		var share float64
		eventually(t, "kube-proxy to have the shares", func(ctx context.Context) (err error) {
			if counted, err = client.tryConnect(ctx, count, "tcp4", s.at(80), "-timeout", lossless.String()); err != nil {
				return err
			}
			share = float64(counted.Clusters()["west"]) / count
			if off := 6 * math.Sqrt(asked*(1-asked)/count); counted.Lost() > 0 || math.Abs(share-asked) > off {
				return fmt.Errorf("west is to have %d %%: %s", step.percent, counted)
			}
			return nil
		})
		b.figures.add(fmt.Sprintf("weights west=%d", step.percent), counted,
			fmt.Sprintf("asked %d.0 %%, has %.1f %%", step.percent, 100*share))
		if step.percent == 50 {
			open = client.keepWith(t, b.east, "tcp4", s.at(80))
		}
		if step.percent == 100 {
			asked := tally.New()
			for range 50 {
				asked.Add(open.ask(t))
			}
			if asked.Clusters()["east"] != 50 {
				t.Errorf("a connection to east is open while new ones go to west: %s", asked)
			}
			b.figures.add("weights west=100: an open connection to east", asked, "50 questions over one")
		}
	}
	counted := tally.New(watched.since(begin)...)
	if counted.Lost() > 0 {
		t.Errorf("connections were lost while weights changed: %s", counted)
	}
	b.figures.add("weights, 1 % to 100 % and back", counted, "")
}

// deployMany exports a Service whose endpoints are many addresses of one pod.
func (c *cluster) deployMany(t testing.TB, s service) {
	t.Helper()
	p := c.pod(t, podSpec{namespace: s.namespace, name: s.name, serve: []string{"tcp:8080"}})
	base := c.nodes[0].pods[0].Masked().Addr().As4()
	base[2] += 100 // far from those that kwok gives to pods
	must(t, c.nodes[0].Route(p.addresses[0], netip.PrefixFrom(netip.AddrFrom4(base), 24)))
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: s.name, Labels: map[string]string{discoveryv1.LabelServiceName: s.name},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{{
			Name: ptr.To("http"), Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To[int32](8080),
		}},
	}
	for i := range many {
		base[3] = byte(i + 1)
		address := netip.AddrFrom4(base)
		must(t, p.AddAddress(address))
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address.String()}})
	}
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

// annotateExport sets an exported annotation.
func (c *cluster) annotateExport(t testing.TB, s service, key, value string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"exportedAnnotations": map[string]any{key: value}}})
	must(t, err)
	_, err = c.mcs.MulticlusterV1beta1().ServiceExports(s.namespace).Patch(t.Context(), s.name, types.MergePatchType, patch,
		metav1.PatchOptions{})
	must(t, err)
}
