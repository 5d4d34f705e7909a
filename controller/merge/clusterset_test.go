// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// A member is one cluster of a random clusterset: what it has of the service
// web, and what the merge needs to know of it.
type member struct {
	observed Observed
	// own is its view of its own export, nil where it has none, absent where it has no Service; sees is how the others
	// see it, read from the slices that it publishes.
	own, sees *export.View
	demote    bool
	// rank is the same in all clusters.
	rank int
}

// randomClusterset has up to five clusters. Few values make many conflicts.
func randomClusterset(t testing.TB, r *rand.Rand) []*member {
	var members []*member
	for i := range 1 + r.IntN(5) {
		cluster := []string{"east", "west", "north.registry", "south", "centre"}[i]
		m := &member{
			observed: Observed{
				Cluster: cluster, Service: web, IPFamilies: randomFamilies(r),
				Place: pick(r, nil, nil, somewhere(i)),
			},
			demote: r.IntN(4) == 0,
			rank:   pick(r, 0, 0, 0, -1, 2),
		}
		if r.IntN(5) > 0 {
			m.observed.ServiceExport = randomExport(r)
			m.own, m.observed.Problems, m.observed.Invalid = export.FromService(export.Exporter{Cluster: cluster}, m.observed.ServiceExport,
				randomService(r), randomSlices(r, i))
		}
		if m.own != nil {
			m.sees = republished(t, m, Merge(m.observed, contribute(m.own)))
		}
		members = append(members, m)
	}
	return members
}

// somewhere returns a Placing by the names of clusters and the addresses of endpoints, which leaves one cluster out.
func somewhere(shift int) Placing {
	return func(imported *v1beta1.ServiceImport, _ []Contribution) Placement {
		return &someOrder{shift: shift, hinted: imported.Spec.Type != v1beta1.Headless}
	}
}

type someOrder struct {
	demotedLast
	shift  int
	hinted bool
}

func (o *someOrder) Level(from Contribution, _ *export.Slice, endpoint *discoveryv1.Endpoint) (use, cover Level) {
	place := (len(from.View.Cluster) + o.shift) % 5
	if place == 4 {
		return Unused, Unused
	}
	level := Level(place + len(endpoint.Addresses[0])%2)
	if from.Demote {
		level += 10
	}
	return level, level
}

func (o *someOrder) Hinted() bool { return o.hinted }

func (o *someOrder) Conditions() []metav1.Condition {
	return []metav1.Condition{{
		Type: export.Domain + "/Place", Status: metav1.ConditionTrue, Reason: "Shifted", Message: fmt.Sprint(o.shift),
	}}
}

// republished is a member's view as another cluster reads it from the slices that the member publishes.
func republished(t testing.TB, m *member, result Result) *export.View {
	t.Helper()
	return reread(t, m.observed.Cluster, result)
}

// reread is the view of a cluster from its slices in a result: those that it publishes, or the copies of them.
func reread(t testing.TB, cluster string, result Result) *export.View {
	t.Helper()
	var published []*discoveryv1.EndpointSlice
	for _, slice := range result.EndpointSlices {
		if slice.Labels[export.LabelSourceCluster] == cluster {
			published = append(published, slice)
		}
	}
	view, found := export.FromSlices(export.Source{Cluster: cluster}, web, published, nil)
	if len(found) > 0 {
		t.Fatalf("slices of %s are read with problems: %v", cluster, found)
	}
	return view
}

// contributions are those of all members as a cluster has them, in any order.
func contributionsIn(r *rand.Rand, cluster string, members []*member) []Contribution {
	var all []Contribution
	for _, m := range members {
		view := m.sees
		if m.observed.Cluster == cluster {
			view = m.own
		}
		if view != nil {
			all = append(all, Contribution{View: view, Demote: m.demote, Rank: m.rank})
		}
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func pick[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

func randomFamilies(r *rand.Rand) []corev1.IPFamily {
	return pick(r, []corev1.IPFamily{"IPv4"}, []corev1.IPFamily{"IPv6"}, []corev1.IPFamily{"IPv4", "IPv6"},
		[]corev1.IPFamily{"IPv6", "IPv4"})
}

func randomExport(r *rand.Rand) *v1beta1.ServiceExport {
	return &v1beta1.ServiceExport{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: web.Namespace, Name: web.Name, UID: "uid-of-export", Generation: r.Int64N(9),
			Annotations:       pick(r, nil, nil, nil, map[string]string{export.AnnotationSaturated: pick(r, "true", "x")}),
			CreationTimestamp: metav1.NewTime(day(1 + r.IntN(3)).Add(time.Duration(r.IntN(3)) * time.Second)),
		},
		Spec: v1beta1.ServiceExportSpec{
			ExportedLabels: pick(r, nil, map[string]string{}, map[string]string{"team": "red"},
				map[string]string{"team": "blue", "k8s.io/x": "y"}),
			ExportedAnnotations: pick(r, nil, map[string]string{"note": `<"é">`},
				map[string]string{
					export.AnnotationWeights: pick(r, "west=10, east=40", "west=100", "east=0", "north.registry=1", "x"),
					export.AnnotationPrefer:  pick(r, "cluster", "none", "west; east > south"),
				},
				map[string]string{export.AnnotationWithin: pick(r, "same(region)", "west; region=eu", "one two", "*")},
				map[string]string{export.AnnotationPrefer: pick(r, "cluster", "none", "one two", "local > same(region)",
					"west; south > region=eu > local", "same(region)", "east > *")}),
		},
	}
}

func randomService(r *rand.Rand) *corev1.Service {
	if r.IntN(5) == 0 {
		return nil
	}
	service := &corev1.Service{Spec: corev1.ServiceSpec{
		ClusterIP:       pick(r, "None", "10.96.0.1"),
		IPFamilies:      randomFamilies(r),
		SessionAffinity: pick(r, corev1.ServiceAffinityNone, corev1.ServiceAffinityClientIP),
		InternalTrafficPolicy: pick(r, nil, ptr.To(corev1.ServiceInternalTrafficPolicyCluster),
			ptr.To(corev1.ServiceInternalTrafficPolicyLocal)),
		TrafficDistribution: pick(r, nil, nil, ptr.To("PreferClose"), ptr.To("PreferSameNode")),
	}}
	if service.Spec.SessionAffinity == corev1.ServiceAffinityClientIP {
		service.Spec.SessionAffinityConfig = pick(r, nil,
			&corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To(1 + r.Int32N(2))}})
	}
	count := r.IntN(4)
	if service.Spec.ClusterIP != "None" {
		count = max(count, 1)
	}
	if r.IntN(20) == 0 {
		for i, first := 0, pick[int32](r, 1000, 1050, 1200, 1300); i < 100; i++ {
			service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{
				Name: fmt.Sprintf("p%d", first+int32(i)),
				Port: first + int32(i), Protocol: corev1.ProtocolTCP,
			})
		}
		return service
	}
	numbers := make(map[string]bool)
	for i := range count {
		port := corev1.ServicePort{
			Port:     pick[int32](r, 80, 81, 53),
			Protocol: pick(r, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP),
		}
		if key := fmt.Sprint(port.Port, port.Protocol); numbers[key] {
			continue
		} else {
			numbers[key] = true
		}
		if count > 1 || r.IntN(2) == 0 {
			port.Name = pick(r, "http", "tcp-80", "dns") + []string{"", "-a", "-b"}[i]
		}
		port.AppProtocol = pick(r, nil, nil, ptr.To("http"))
		service.Spec.Ports = append(service.Spec.Ports, port)
	}
	return service
}

func randomSlices(r *rand.Rand, cluster int) []*discoveryv1.EndpointSlice {
	var all []*discoveryv1.EndpointSlice
	for i := range r.IntN(4) {
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: fmt.Sprintf("web-%d", i)},
			AddressType: pick(r, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6,
				discoveryv1.AddressTypeFQDN),
		}
		if r.IntN(2) == 0 {
			slice.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: "2026-03-01T12:00:00.5Z"}
		}
		for _, name := range []string{"", "http", "tcp-80", "dns", "http-a", "dns-b"} {
			if r.IntN(3) > 0 {
				slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{
					Name: ptr.To(name), Port: ptr.To(8000 + r.Int32N(2)),
					Protocol: ptr.To(pick(r, corev1.ProtocolTCP, corev1.ProtocolUDP)),
				})
			}
		}
		for j := range r.IntN(4) {
			condition := func() *bool { return pick(r, nil, ptr.To(true), ptr.To(false)) }
			address := fmt.Sprintf("10.%d.%d.%d", cluster, i, j)
			if slice.AddressType == discoveryv1.AddressTypeIPv6 {
				address = fmt.Sprintf("fd00:%x::%x:%x", cluster+1, i+1, j+1)
			}
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
				Addresses: []string{address},
				Conditions: discoveryv1.EndpointConditions{
					Ready: condition(), Serving: condition(),
					Terminating: condition(),
				},
				Hostname:  pick(r, nil, ptr.To("web-0")),
				NodeName:  ptr.To("node-1"),
				TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "web"},
				Zone:      pick(r, nil, ptr.To("zone-a"), ptr.To("zone-b")),
				Hints:     &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "zone-a"}}},
			})
		}
		all = append(all, slice)
	}
	return all
}

// textOf is all of a value as text.
func textOf(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// objectsOf are what an Observed refers to.
func objectsOf(o Observed) []any {
	return []any{o.ServiceImport, o.ServiceExport, o.DerivedService, o.IPFamilies, o.Problems}
}
