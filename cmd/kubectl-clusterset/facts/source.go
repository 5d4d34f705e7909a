// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/input"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
	"github.com/clusterset-dns/clusterset-dns/controller/selector"
)

// A Source is the export of one cluster as another one knows it, derived with the
// code of the controller.
type Source struct {
	Cluster string
	// Own reports whether it is the local cluster.
	Own bool
	// Member is nil for the local cluster.
	Member *Member
	State  liveness.State
	// Drained reports whether an annotation demotes its endpoints.
	Drained bool
	// Rank is that of its export in conflicts: see member.ParseRank.
	Rank int
	// View is what is imported of it, nil if it exports nothing. Its endpoints have the
	// conditions in their own cluster.
	View *export.View
	// Published is what it publishes now, nil if it exports nothing or was not read.
	// Problems are the parts that are not imported.
	Published *export.View
	Problems  []export.Problem
	// Invalid is why its export does not count; View and Published are nil then. Of a
	// member it is set only if the Service does not exist.
	Invalid *export.Invalid
	// Chosen is the selector of the clusters that its export is for, if the local cluster is not among them. Refused is
	// the rule by which the local cluster does not accept the export. Published is nil in both cases.
	Chosen, Refused string
	// Properties are the ClusterProperties of the cluster, as the local one knows them.
	Properties map[string]string
	// Outside reports whether the cluster is outside of the border of the import, so that its endpoints are not imported.
	Outside bool
}

// Demoted reports whether its endpoints are used only if no other cluster has a
// ready one.
func (s *Source) Demoted() bool { return s.State != liveness.Fresh || s.Drained }

// PodsUnreachable reports whether the cluster is stale because its pods are not reached.
func (s *Source) PodsUnreachable() bool {
	return s.State == liveness.Stale && s.Member != nil && s.Member.Path() == liveness.Unreachable
}

// Behind reports whether it publishes something else than what is imported.
func (s *Source) Behind() bool {
	published := s.Published
	if s.Outside && published != nil {
		limited := *published
		limited.Slices = slices.Clone(published.Slices)
		for i := range limited.Slices {
			limited.Slices[i].Endpoints = nil
		}
		published = &limited
	}
	return s.Member != nil && s.Member.Unread == nil && !reflect.DeepEqual(s.View, published)
}

// Since is when its published endpoints last changed, by its own clock; zero if
// unknown.
func (s *Source) Since() time.Time {
	var last time.Time
	if s.Published == nil {
		return last
	}
	for i := range s.Published.Slices {
		if at, err := time.Parse(time.RFC3339Nano, s.Published.Slices[i].TriggerTime); err == nil && at.After(last) {
			last = at
		}
	}
	return last
}

// Sources are the exports of a service: the local one first, then those of members
// by id.
func (f *Facts) Sources(service types.NamespacedName) []Source {
	var sources []Source
	border := f.border(service)
	if serviceExport := f.Export(service); serviceExport != nil {
		source := Source{Cluster: f.ID, Own: true, Drained: f.Drained(), Rank: f.Rank()}
		source.View, source.Problems, source.Invalid = export.FromService(f.ID, serviceExport, f.service(service),
			f.slicesOf(service))
		// Other objections of the controller are on the ServiceExport.
		if valid := condition(serviceExport, v1beta1.ServiceExportConditionValid); source.Invalid == nil &&
			valid != nil && valid.Status == "False" && valid.Reason == input.InvalidDenied {
			source.View, source.Invalid = nil, &export.Invalid{Reason: valid.Reason, Message: valid.Message}
		}
		if source.Invalid != nil {
			source.View = nil
		}
		source.Published = source.View
		sources = append(sources, source)
	}
	for i := range f.Members {
		m := &f.Members[i]
		source := Source{Cluster: m.ID, Member: m, State: m.State(), Drained: m.Drained(), Rank: m.Rank}
		source.Properties = m.properties()
		source.Outside = !border.Admits(selector.Cluster{ID: m.ID, Properties: source.Properties}, f.reader())
		copies := f.Copies(service, m.ID)
		from := export.Source{Cluster: m.ID, Set: f.Set, CIDRs: m.CIDRs, Reader: f.reader()}
		source.View, _ = export.FromSlices(from, service, copies, nil)
		if m.Unread == nil {
			source.Published, source.Problems = export.FromSlices(from, service,
				slices.DeleteFunc(slices.Clone(m.Published), func(slice *discoveryv1.EndpointSlice) bool {
					return member.ServiceOf(slice) != service
				}), source.View)
		}
		if source.Published == nil {
			source.Chosen = m.chosen(service)
		}
		if rule := f.Refuses(m, service); rule != "" && m.publishes(service) {
			source.Refused, source.Published, source.Problems = rule, nil, nil
		}
		says := source.Published
		if m.Unread != nil {
			says = source.View
		}
		if says != nil && says.Absent() {
			source.Invalid = &export.Invalid{
				Reason: string(v1beta1.ServiceExportReasonNoService),
				Message: fmt.Sprintf("Service %s does not exist in %s. Create it, or delete the ServiceExport.",
					service, m.ID),
			}
			source.View, source.Published = nil, nil
		} else if source.View != nil && source.View.Absent() {
			source.View = nil
		}
		if source.View != nil || source.Published != nil || source.Invalid != nil || len(source.Problems) > 0 ||
			source.Chosen != "" || source.Refused != "" {
			sources = append(sources, source)
		}
	}
	return sources
}

// Rank is that of local exports in conflicts.
func (f *Facts) Rank() int {
	namespace := f.Namespaces[f.System]
	if namespace == nil {
		return 0
	}
	rank, _ := member.ParseRank(namespace.Annotations)
	return rank
}

// Contributions are those of the sources to a merge in this cluster, with what is
// published but not imported yet.
func Contributions(sources []Source) []merge.Contribution {
	var contributions []merge.Contribution
	for i := range sources {
		source := &sources[i]
		view := source.View
		if view == nil {
			view = source.Published
		}
		if view != nil && source.State != liveness.Gone {
			contributions = append(contributions, merge.Contribution{
				View: view, Demote: source.Demoted(),
				Rank: source.Rank, Properties: source.Properties,
			})
		}
	}
	return contributions
}

// Export returns the ServiceExport of a service, nil if there is none.
func (f *Facts) Export(service types.NamespacedName) *v1beta1.ServiceExport {
	for i := range f.Exports {
		if found := &f.Exports[i]; found.Namespace == service.Namespace && found.Name == service.Name {
			return found
		}
	}
	return nil
}

// Import returns the ServiceImport of a service, nil if there is none.
func (f *Facts) Import(service types.NamespacedName) *v1beta1.ServiceImport {
	for i := range f.Imports {
		if found := &f.Imports[i]; found.Namespace == service.Namespace && found.Name == service.Name {
			return found
		}
	}
	return nil
}

func (f *Facts) service(name types.NamespacedName) *corev1.Service {
	for i := range f.Services {
		if found := &f.Services[i]; found.Namespace == name.Namespace && found.Name == name.Name {
			return found
		}
	}
	return nil
}

// slicesOf are those that Kubernetes has for a Service.
// slicesOf are those of the local export of a service, and those by which it is published.
func (f *Facts) slicesOf(service types.NamespacedName) []*discoveryv1.EndpointSlice {
	var found []*discoveryv1.EndpointSlice
	for _, slice := range f.Slices {
		published := slice.Labels[export.LabelService] == service.Name && slice.Labels[export.LabelSourceCluster] == f.ID
		if slice.Namespace == service.Namespace &&
			(published || slice.Labels[export.LabelKubernetesService] == service.Name) {
			found = append(found, slice)
		}
	}
	return found
}

func condition(serviceExport *v1beta1.ServiceExport, kind v1beta1.ServiceExportConditionType) *metav1.Condition {
	return meta.FindStatusCondition(serviceExport.Status.Conditions, string(kind))
}
