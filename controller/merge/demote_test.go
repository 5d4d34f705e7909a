// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// TestDemote: a slice of a demoted cluster is demoted where, and only where,
// there is somewhere else to go for all that it serves.
func TestDemote(t *testing.T) {
	type exports = []*export.View
	const ready, demoted, unready = "ready", "demoted", "unready"
	v := newView
	for name, test := range map[string]struct {
		silent string // ports and endpoints of the silent cluster's slice
		ports  string
		others exports
		kind   func(*export.View)
		want   string // first endpoint of the silent cluster
	}{
		"another has it":            {"10.1.0.1", "80/TCP", exports{v("b", 2, "80/TCP", "10.2.0.1")}, nil, demoted},
		"no other cluster":          {"10.1.0.1", "80/TCP", nil, nil, ready},
		"another has none":          {"10.1.0.1", "80/TCP", exports{v("b", 2, "80/TCP", "")}, nil, ready},
		"another's is not ready":    {"10.1.0.1", "80/TCP", exports{v("b", 2, "80/TCP", "!10.2.0.1")}, nil, ready},
		"another port":              {"10.1.0.1", "a:80/TCP", exports{v("b", 2, "b:81/TCP", "10.2.0.1")}, nil, ready},
		"another protocol":          {"10.1.0.1", "a:80/TCP", exports{v("b", 2, "b:80/UDP", "10.2.0.1")}, nil, ready},
		"one of two ports":          {"10.1.0.1", "a:80/TCP b:81/TCP", exports{v("b", 2, "a:80/TCP", "10.2.0.1")}, nil, ready},
		"both ports, in two":        {"10.1.0.1", "a:80/TCP b:81/TCP", exports{v("b", 2, "a:80/TCP", "10.2.0.1"), v("c", 3, "b:81/TCP", "10.3.0.1")}, nil, demoted},
		"another name, one number":  {"10.1.0.1", "a:80/TCP", exports{v("b", 2, "b:80/TCP", "10.2.0.1")}, nil, demoted},
		"another family":            {"10.1.0.1", "80/TCP", exports{v("b", 2, "80/TCP", "fd00::1")}, nil, ready},
		"not ready itself":          {"!10.1.0.1", "80/TCP", exports{v("b", 2, "80/TCP", "10.2.0.1")}, nil, unready},
		"headless":                  {"10.1.0.1", "80/TCP", exports{v("b", 2, "80/TCP", "10.2.0.1", headless)}, headless, demoted},
		"headless without ports":    {"10.1.0.1", "", exports{v("b", 2, "", "10.2.0.1", headless)}, headless, demoted},
		"headless, nothing ready":   {"10.1.0.1", "", exports{v("b", 2, "", "!10.2.0.1", headless)}, headless, ready},
		"headless, another port":    {"10.1.0.1", "a:80/TCP", exports{v("b", 2, "b:81/TCP", "10.2.0.1", headless)}, headless, ready},
		"headless, one has no port": {"10.1.0.1", "", exports{v("b", 2, "b:81/TCP", "10.2.0.1", headless)}, headless, demoted},
	} {
		t.Run(name, func(t *testing.T) {
			silent := v("a", 1, test.ports, test.silent)
			if test.kind != nil {
				test.kind(silent)
			}
			contributions := append([]Contribution{{View: silent, Demote: true}}, contribute(test.others...)...)
			state := func(slice *discoveryv1.EndpointSlice) string {
				switch c := slice.Endpoints[0].Conditions; fmt.Sprint(*c.Ready, *c.Serving, *c.Terminating) {
				case "true true false":
					return ready
				case "false true true":
					return demoted
				case "false false false":
					return unready
				}
				return "?"
			}
			// Silent seen from another cluster, and the own one when it is drained.
			for _, cluster := range []string{"north", "a"} {
				result := Merge(newObserved(cluster), contributions)
				for _, slice := range result.EndpointSlices {
					source := slice.Labels[export.LabelSourceCluster]
					if source == "a" {
						diff(t, "state in "+cluster, state(slice), test.want)
					} else if len(slice.Endpoints) > 0 && state(slice) == demoted {
						t.Errorf("cluster %s is demoted too", source)
					}
				}
				// Nothing else depends on it.
				plain := Merge(newObserved(cluster), append(contribute(silent), contribute(test.others...)...))
				diff(t, "import", result.ServiceImport, plain.ServiceImport)
				diff(t, "conditions", result.ExportConditions, plain.ExportConditions)
			}
		})
	}
}

func TestAllDemoted(t *testing.T) {
	views := contribute(newView("a", 1, "80/TCP", "10.1.0.1"), newView("b", 2, "80/TCP", "10.2.0.1"))
	for i := range views {
		views[i].Demote = true
	}
	for _, slice := range Merge(newObserved("a"), views).EndpointSlices {
		if !*slice.Endpoints[0].Conditions.Ready {
			t.Errorf("slice %s is demoted with nowhere to go", slice.Name)
		}
	}
}

// TestDemotedIsRemembered: who reads a demoted slice sees what it was.
func TestDemotedIsRemembered(t *testing.T) {
	silent := newView("a", 1, "80/TCP", "10.1.0.1 !10.1.0.2 10.1.0.3")
	silent.Slices[0].Endpoints[2].Conditions = export.Conditions(true, false, true)
	before := silent.Slices[0].Endpoints
	contributions := append(contribute(newView("b", 2, "80/TCP", "10.2.0.1")), Contribution{View: silent, Demote: true})
	var copies []*discoveryv1.EndpointSlice
	for _, slice := range Merge(newObserved("b"), contributions).EndpointSlices {
		if slice.Labels[export.LabelSourceCluster] == "a" {
			copies = append(copies, slice)
		}
	}
	read, found := export.FromSlices(export.Source{Cluster: "a"}, web, copies, nil)
	if len(found) > 0 {
		t.Errorf("problems %v", found)
	}
	diff(t, "view", read, silent)
	diff(t, "the view that was merged", silent.Slices[0].Endpoints, before)
}

// TestKeepsImport: an import outlives the Service of its own cluster's export,
// and no import comes of an export without one.
func TestKeepsImport(t *testing.T) {
	observed, last := settled(t, newObserved("east"), contribute(newView("east", 1, "http:80/TCP", "10.1.0.1", labels("team=red"))))
	noService := &export.Invalid{Reason: "NoService", Message: "Service demo/web does not exist."}

	observed.Invalid = noService
	gone, result := settled(t, observed, nil)
	want := last.ServiceImport.DeepCopy()
	want.Status = result.ServiceImport.Status
	diff(t, "import", result.ServiceImport, want)
	diff(t, "derived Service", result.DerivedService, last.DerivedService)
	if len(result.EndpointSlices) > 0 || len(result.ServiceImport.Status.Clusters) > 0 {
		t.Errorf("slices %v, clusters %v", result.EndpointSlices, result.ServiceImport.Status.Clusters)
	}
	diff(t, "endpointSliceObjects", string(result.ServiceImport.Status.EndpointSliceObjects), "Absent")
	diff(t, "ready", conditionOf(t, result.ServiceImport.Status.Conditions, "Ready"), metav1.Condition{
		Type: "Ready", Status: metav1.ConditionFalse, Reason: "Pending",
		Message: "No cluster exports the service. The import stays for ServiceExport demo/web, whose Service does not exist.",
	})

	t.Run("the derived Service comes back with its IP", func(t *testing.T) {
		observed := gone
		observed.DerivedService = nil
		diff(t, "IPs", Merge(observed, nil).DerivedService.Spec.ClusterIPs, []string{"10.96.0.7"})
	})
	t.Run("an API without families", func(t *testing.T) {
		observed := gone
		observed.ServiceImport = gone.ServiceImport.DeepCopy()
		observed.ServiceImport.Spec.IPFamilies = nil
		diff(t, "families", Merge(observed, nil).DerivedService.Spec.IPFamilies, []corev1.IPFamily{"IPv4"})
	})
	t.Run("the Service comes back", func(t *testing.T) {
		observed := gone
		observed.Invalid = nil
		_, result := settled(t, observed, contribute(newView("east", 1, "http:80/TCP", "10.1.0.1", labels("team=red"))))
		diff(t, "result", result, last)
	})
	t.Run("another cluster exports it", func(t *testing.T) {
		_, result := settled(t, gone, contribute(newView("west", 1, "http:80/TCP", "10.2.0.1")))
		diff(t, "IPs", result.ServiceImport.Spec.IPs, []string{"10.96.0.7"})
		diff(t, "clusters", len(result.ServiceImport.Status.Clusters), 1)
	})
	for name, change := range map[string]func(*Observed){
		"the export goes":        func(o *Observed) { o.ServiceExport, o.Invalid = nil, nil },
		"the export is going":    func(o *Observed) { o.ServiceExport.DeletionTimestamp = &metav1.Time{Time: day(9)} },
		"the Service is invalid": func(o *Observed) { o.Invalid = &export.Invalid{Reason: "InvalidServiceType"} },
		"there was no import":    func(o *Observed) { o.ServiceImport, o.DerivedService = nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			observed := gone
			observed.ServiceExport = gone.ServiceExport.DeepCopy()
			change(&observed)
			result := Merge(observed, nil)
			if result.ServiceImport != nil || result.DerivedService != nil || len(result.EndpointSlices) > 0 {
				t.Errorf("result %v", result)
			}
		})
	}
}
