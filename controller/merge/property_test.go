// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// cases are random clustersets; make fuzz looks at more.
const cases = 500

// TestClustersets checks what holds of every merge in random clustersets, seen
// from each of their clusters and in random order.
func TestClustersets(t *testing.T) {
	t.Parallel()
	const parts = 4
	for part := range parts {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			for seed := part; seed < cases && !t.Failed(); seed += parts {
				checkClusterset(t, uint64(seed))
			}
		})
	}
}

// FuzzMerge does the same for clustersets that coverage finds.
func FuzzMerge(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed)
	}
	f.Fuzz(checkClusterset)
}

func checkClusterset(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	members := randomClusterset(t, r)
	var agreed *everywhere
	for _, m := range members {
		name := fmt.Sprintf("clusterset %d, cluster %s: ", seed, m.observed.Cluster)
		contributions := contributionsIn(r, m.observed.Cluster, members)
		before := textOf(t, contributions) + textOf(t, objectsOf(m.observed))
		result := Merge(m.observed, contributions)
		diff(t, name+"input", textOf(t, contributions)+textOf(t, objectsOf(m.observed)), before)

		// Invariant: the same views give the same import everywhere.
		here := everywhereOf(result)
		if agreed == nil {
			agreed = &here
		}
		diff(t, name+"what all clusters have in common", here, *agreed)

		// Nor does the order matter in one cluster.
		again := slices.Clone(contributions)
		r.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
		diff(t, name+"another order", Merge(m.observed, again), result)

		// What is read of the slices, published or copied, is what it was.
		// Without an import nothing here owns copies of what is absent.
		source := pick(r, members...)
		if source.sees != nil && (result.ServiceImport != nil || source.observed.Cluster == m.observed.Cluster) {
			want := source.sees
			if unusedIn(m.observed, result, source) {
				view := *want
				view.Slices, want = slices.Clone(view.Slices), &view
				for i := range view.Slices {
					endpoints := slices.Clone(view.Slices[i].Endpoints)
					for j := range endpoints {
						if !isReady(&endpoints[j]) {
							endpoints[j].Conditions = export.Conditions(false, false, false)
						}
					}
					view.Slices[i].Endpoints = endpoints
				}
			}
			diff(t, name+"view of "+source.observed.Cluster, reread(t, source.observed.Cluster, result), want)
		}
		checkResult(t, name, m.observed, result)

		// The merge comes to rest, and then changes nothing.
		observed, settledResult := settled(t, m.observed, contributions)
		if settledResult.ServiceImport != nil {
			diff(t, name+"import at rest", settledResult.ServiceImport, observed.ServiceImport)
			diff(t, name+"what all clusters have in common, at rest", everywhereOf(settledResult), *agreed)
		}
		if settledResult.DerivedService != nil {
			diff(t, name+"derived Service at rest", settledResult.DerivedService, observed.DerivedService)
		}
		if r.IntN(4) == 0 {
			checkReplaced(t, name, r, observed, contributions, settledResult)
		}
	}
}

// unusedIn reports whether a cluster uses none of the endpoints of another one.
func unusedIn(observed Observed, result Result, source *member) bool {
	level, _ := observed.PlacementOf(result.ServiceImport, nil).Level(Contribution{View: source.sees}, nil,
		&discoveryv1.Endpoint{Addresses: []string{""}})
	return level == Unused
}

// checkReplaced takes the Services of all exports away. The import and what is behind it stay as they are, with no
// endpoints, and come back with them. They go once nobody exports.
func checkReplaced(t *testing.T, name string, r *rand.Rand, observed Observed, contributions []Contribution,
	before Result,
) {
	t.Helper()
	var absent []Contribution
	for _, c := range contributions {
		absent = append(absent, Contribution{View: newAbsent(c.View.Cluster), Rank: c.Rank})
	}
	r.Shuffle(len(absent), func(i, j int) { absent[i], absent[j] = absent[j], absent[i] })
	gone, result := settled(t, observed, absent)
	for _, slice := range result.EndpointSlices {
		if len(slice.Endpoints) > 0 || len(slice.Ports) > 0 {
			t.Errorf("%sslice without a Service %v", name, slice)
		}
	}
	if before.ServiceImport == nil {
		diff(t, name+"import that comes of nothing", result.ServiceImport, before.ServiceImport)
		return
	}
	want := before.ServiceImport.DeepCopy()
	want.Status = result.ServiceImport.Status
	diff(t, name+"import without Services", result.ServiceImport, want)
	diff(t, name+"derived Service without Services", result.DerivedService, before.DerivedService)
	_, back := settled(t, gone, contributions)
	diff(t, name+"import when the Services are back", everywhereOf(back), everywhereOf(before))
	diff(t, name+"IPs when the Services are back", back.ServiceImport.Spec.IPs, before.ServiceImport.Spec.IPs)
	if last := Merge(gone, nil); last.ServiceImport != nil || last.DerivedService != nil ||
		len(last.EndpointSlices) > 0 {
		t.Errorf("%swhat is left without exports: %v", name, last)
	}
}

// everywhere is what must be equal in all clusters.
type everywhere struct {
	Exists              bool
	Kind                v1beta1.ServiceImportType
	Ports               []v1beta1.ServicePort
	Affinity            corev1.ServiceAffinity
	AffinityConfig      *corev1.SessionAffinityConfig
	Policy              *corev1.ServiceInternalTrafficPolicy
	Distribution        *string
	Labels, Annotations map[string]string
	Clusters            []v1beta1.ClusterStatus
}

func everywhereOf(result Result) everywhere {
	imported := result.ServiceImport
	if imported == nil {
		return everywhere{}
	}
	return everywhere{
		Exists: true, Kind: imported.Spec.Type, Ports: imported.Spec.Ports,
		Affinity: imported.Spec.SessionAffinity, AffinityConfig: imported.Spec.SessionAffinityConfig,
		Policy: imported.Spec.InternalTrafficPolicy, Distribution: imported.Spec.TrafficDistribution,
		Labels: imported.Labels, Annotations: imported.Annotations, Clusters: imported.Status.Clusters,
	}
}

// checkResult checks what the API server would.
func checkResult(t *testing.T, name string, observed Observed, result Result) {
	t.Helper()
	if imported := result.ServiceImport; imported != nil {
		names, numbers := make(map[string]bool), make(map[portKey]bool)
		for _, port := range imported.Spec.Ports {
			key := portKey{port.Protocol, port.Port}
			if names[port.Name] || numbers[key] || (port.Name == "" && len(imported.Spec.Ports) > 1) ||
				(port.Name != "" && len(validation.IsDNS1123Label(port.Name)) > 0) {
				t.Errorf("%sports %v", name, imported.Spec.Ports)
			}
			names[port.Name], numbers[key] = true, true
		}
		if len(imported.Spec.Ports) > maxPorts || imported.Spec.Ports == nil ||
			(imported.Spec.Type == v1beta1.Headless && len(imported.Spec.IPs) > 0) {
			t.Errorf("%simport %v", name, imported.Spec)
		}
		if (result.DerivedService != nil) != (imported.Spec.Type == v1beta1.ClusterSetIP &&
			len(imported.Spec.IPFamilies) > 0) {
			t.Errorf("%sderived Service %v for %v", name, result.DerivedService, imported.Spec)
		}
	}
	seen := ""
	for _, slice := range result.EndpointSlices {
		if slice.Name <= seen || slice.Ports == nil || // which the API refuses
			len(validation.IsDNS1123Subdomain(slice.Name)) > 0 {
			t.Errorf("%sslice %q after %q, with the ports %v", name, slice.Name, seen, slice.Ports)
		}
		seen = slice.Name
		names := make(map[string]bool)
		for _, port := range slice.Ports {
			if names[*port.Name] {
				t.Errorf("%sports of slice %s: %v", name, slice.Name, slice.Ports)
			}
			names[*port.Name] = true
		}
		if slice.Labels[export.LabelSourceCluster] == observed.Cluster {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			if endpoint.NodeName != nil || endpoint.TargetRef != nil {
				t.Errorf("%san endpoint of another cluster has node %v and pod %v", name, endpoint.NodeName,
					endpoint.TargetRef)
			}
		}
	}
	for _, condition := range result.ExportConditions {
		if condition.Reason == "" {
			t.Errorf("%scondition %v", name, condition)
		}
	}
}
