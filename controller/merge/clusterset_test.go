// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// A member is one cluster of a random clusterset: its objects of the service web, and the input of a merge.
type member struct {
	observed Observed
	// own is its view of its own export, nil without an export, absent without a Service. sees is the view of other
	// clusters, read from the slices that it publishes.
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
				Cluster: cluster, Service: web, IPFamilies: randomFamilies(r), Place: demoting,
			},
			demote: r.IntN(4) == 0,
			rank:   pick(r, 0, 0, 0, -1, 2),
		}
		if r.IntN(5) > 0 {
			m.observed.ServiceExport, m.own = newObserved(cluster).ServiceExport, randomView(r, cluster, i)
			m.sees = reread(t, cluster, false, Merge(m.observed, contribute(m.own)))
		}
		members = append(members, m)
	}
	return members
}

// reread is the view of a cluster from its slices in a result, published ones or copies.
func reread(t testing.TB, cluster string, copies bool, result Result) *export.View {
	t.Helper()
	all := export.SlicesOf(cluster, result.EndpointSlices)
	view, found, _ := export.FromSlices(export.Source{Cluster: cluster, Keep: copies}, web, all, all)
	if len(found) > 0 {
		t.Fatalf("slices of %s are read with problems: %v", cluster, found)
	}
	return view
}

// contributionsIn returns the contributions of all members as one cluster reads them, in random order.
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

func randomView(r *rand.Rand, cluster string, number int) *export.View {
	if r.IntN(5) == 0 {
		return newAbsent(cluster)
	}
	kind := pick(r, v1beta1.ClusterSetIP, v1beta1.Headless)
	var ports []string
	for i, n := range r.Perm(3)[:r.IntN(4)] {
		name := pick(r, "http", "tcp-80", "dns") + []string{"", "-a", "-b"}[i]
		ports = append(ports, fmt.Sprintf("%s:%d/%s%s", name, 80+n, pick(r, "TCP", "UDP", "SCTP"), pick(r, "", "", "(http)")))
	}
	if len(ports) == 0 && kind == v1beta1.ClusterSetIP || len(ports) == 1 && r.IntN(2) == 0 {
		ports = []string{pick(r, "80/TCP", "81/TCP", "80/UDP")}
	}
	view := newView(cluster, 1+r.IntN(3), strings.Join(ports, " "), "")
	view.Spec.Type, view.Spec.IPFamilies, view.Spec.Overloaded = kind, randomFamilies(r), r.IntN(5) == 0
	view.Spec.InternalTrafficPolicy = pick(r, corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal)
	view.Spec.TrafficDistribution = pick(r, "", "", "PreferClose", "PreferSameNode")
	view.Spec.Labels = pick(r, nil, map[string]string{"team": "red"}, map[string]string{"team": "blue", "tier": "front"})
	view.Spec.Annotations = pick(r, nil, map[string]string{"note": `<"é">`}, map[string]string{export.AnnotationPrefer: "cluster"})
	pick(r, func(*export.View) {}, timeout(1), timeout(2))(view)
	for i := range r.IntN(4) {
		slice := newSlice(fmt.Sprintf("web-%s-%d", cluster, i), strings.Join(ports, " "), "")
		slice.AddressType = pick(r, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6)
		slice.Targets = slices.DeleteFunc(slice.Targets, func(export.Target) bool { return r.IntN(4) == 0 })
		slice.TriggerTime = pick(r, "", "2026-03-01T12:00:00.5Z")
		for j := range r.IntN(4) {
			address := fmt.Sprintf("10.%d.%d.%d", number, i, j)
			if slice.AddressType == discoveryv1.AddressTypeIPv6 {
				address = fmt.Sprintf("fd00:%x::%x:%x", number+1, i+1, j+1)
			}
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
				Addresses:  []string{address},
				Conditions: pick(r, export.Conditions(true, true, false), export.Conditions(false, true, true), export.Conditions(false, false, false)),
				Hostname:   pick(r, nil, ptr.To("web-0")),
				NodeName:   ptr.To("node-1"),
				TargetRef:  &corev1.ObjectReference{Kind: "Pod", Name: "web"},
				Zone:       pick(r, nil, ptr.To("zone-a"), ptr.To("zone-b")),
			})
		}
		view.Slices = append(view.Slices, slice)
	}
	return view
}

// inputOf is the input of a merge as text.
func inputOf(t *testing.T, o Observed, contributions []Contribution) string {
	t.Helper()
	text, err := json.Marshal([]any{contributions, o.ServiceImport, o.ServiceExport, o.DerivedService, o.IPFamilies})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
