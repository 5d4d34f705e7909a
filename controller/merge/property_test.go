// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// cases are random clustersets; make fuzz looks at more.
const cases = 500

// TestClustersets checks the invariants of merges in random clustersets, in each of their clusters and in random order.
func TestClustersets(t *testing.T) {
	for seed := uint64(0); seed < cases && !t.Failed(); seed++ {
		checkClusterset(t, seed)
	}
}

// FuzzMerge does the same for clustersets that the fuzzer finds.
func FuzzMerge(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed)
	}
	f.Fuzz(checkClusterset)
}

func checkClusterset(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	members := randomClusterset(t, r)
	var agreed *v1beta1.ServiceImport
	for i, m := range members {
		name := fmt.Sprintf("clusterset %d, cluster %s: ", seed, m.observed.Cluster)
		contributions := contributionsIn(r, m.observed.Cluster, members)
		before := inputOf(t, m.observed, contributions)
		result := Merge(m.observed, contributions)
		diff(t, name+"input", inputOf(t, m.observed, contributions), before)

		// Invariant: the same views give the same import everywhere.
		if i == 0 {
			agreed = everywhereOf(result)
		}
		diff(t, name+"what all clusters have in common", everywhereOf(result), agreed)

		// It does not depend on which clusters are unreachable.
		heard := slices.Clone(contributions)
		for i := range heard {
			heard[i].Demote = false
		}
		ofHeard := Merge(m.observed, heard)
		diff(t, name+"what all clusters have in common if all are heard", everywhereOf(ofHeard), agreed)
		diff(t, name+"conditions of the export if all are heard", ofHeard.ExportConditions, result.ExportConditions)

		// The result does not depend on the order of the contributions.
		again := slices.Clone(contributions)
		r.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
		diff(t, name+"another order", Merge(m.observed, again), result)

		// The view read from the slices, published or copied, equals the original. Without an import, nothing owns copies
		// of an absent view.
		source := pick(r, members...)
		if source.sees != nil && (result.ServiceImport != nil || source.observed.Cluster == m.observed.Cluster) {
			diff(t, name+"view of "+source.observed.Cluster, reread(t, source.observed.Cluster, source.observed.Cluster != m.observed.Cluster, result), source.sees)
		}
		checkResult(t, name, m.observed, result)

		// The merge converges, and then changes nothing.
		observed, settledResult := settled(t, m.observed, contributions)
		if settledResult.ServiceImport != nil {
			diff(t, name+"import at rest", settledResult.ServiceImport, observed.ServiceImport)
			diff(t, name+"what all clusters have in common, at rest", everywhereOf(settledResult), agreed)
		}
		if settledResult.DerivedService != nil {
			diff(t, name+"derived Service at rest", settledResult.DerivedService, observed.DerivedService)
		}
	}
}

// everywhereOf is the part of the import that must be equal in all clusters, nil for none.
func everywhereOf(result Result) *v1beta1.ServiceImport {
	if result.ServiceImport == nil {
		return nil
	}
	imported := result.ServiceImport.DeepCopy()
	imported.UID, imported.Spec.IPs, imported.Spec.IPFamilies = "", nil, nil
	imported.Status = v1beta1.ServiceImportStatus{Clusters: imported.Status.Clusters}
	return imported
}

// checkResult checks a result as the API server validates it.
func checkResult(t *testing.T, name string, observed Observed, result Result) {
	t.Helper()
	if imported := result.ServiceImport; imported != nil {
		names, numbers := sets.New[string](), sets.New[portKey]()
		for _, port := range imported.Spec.Ports {
			names.Insert(port.Name)
			numbers.Insert(portKey{port.Protocol, port.Port})
			if port.Name == "" && len(imported.Spec.Ports) > 1 || port.Name != "" && len(validation.IsDNS1123Label(port.Name)) > 0 {
				t.Errorf("%sport %v", name, port)
			}
		}
		if len(names) < len(imported.Spec.Ports) || len(numbers) < len(imported.Spec.Ports) || imported.Spec.Ports == nil ||
			(imported.Spec.Type == v1beta1.Headless && len(imported.Spec.IPs) > 0) {
			t.Errorf("%simport %v", name, imported.Spec)
		}
		if (result.DerivedService != nil) != (imported.Spec.Type == v1beta1.ClusterSetIP && len(imported.Spec.IPFamilies) > 0) {
			t.Errorf("%sderived Service %v for %v", name, result.DerivedService, imported.Spec)
		}
	}
	seen := sets.New[string]()
	for _, slice := range result.EndpointSlices {
		names := sets.New[string]()
		for _, port := range slice.Ports {
			names.Insert(*port.Name)
		}
		if seen.Has(slice.Name) || len(validation.IsDNS1123Subdomain(slice.Name)) > 0 ||
			slice.Ports == nil || len(names) < len(slice.Ports) { // the API server rejects these
			t.Errorf("%sslice %q among %v, with the ports %v", name, slice.Name, seen, slice.Ports)
		}
		seen.Insert(slice.Name)
		for _, endpoint := range slice.Endpoints {
			if slice.Labels[export.LabelSourceCluster] != observed.Cluster && (endpoint.NodeName != nil || endpoint.TargetRef != nil) {
				t.Errorf("%san endpoint of another cluster has node %v and pod %v", name, endpoint.NodeName, endpoint.TargetRef)
			}
		}
	}
	for _, condition := range result.ExportConditions {
		if condition.Reason == "" {
			t.Errorf("%scondition %v", name, condition)
		}
	}
}
