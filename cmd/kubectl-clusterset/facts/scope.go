// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/accept"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/input"
	"github.com/clusterset-dns/clusterset-dns/controller/local"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
	"github.com/clusterset-dns/clusterset-dns/controller/properties"
	"github.com/clusterset-dns/clusterset-dns/controller/selector"
	"github.com/clusterset-dns/clusterset-dns/controller/traffic"
)

// reader is the local cluster as its heartbeat describes it.
func (f *Facts) reader() selector.Cluster {
	is := selector.Cluster{ID: f.ID}
	if f.Heartbeat != nil {
		is.Properties, _ = properties.Parse(member.DescriptionOf(f.Heartbeat).Properties) // the controller writes what is valid
	}
	return is
}

// properties are those of the member that the controller keeps.
func (m *Member) properties() map[string]string {
	if m.Lease == nil {
		return nil
	}
	known, _ := properties.Parse(m.Lease.Annotations[properties.Annotation]) // the controller writes what is valid
	return known
}

// border is that of the import of a service, none without one.
func (f *Facts) border(service types.NamespacedName) traffic.Border {
	serviceImport := f.Import(service)
	if serviceImport == nil || !export.IsManaged(serviceImport) {
		return traffic.Border{}
	}
	border, _ := traffic.ParseBorder(serviceImport.Annotations[export.AnnotationWithin]) // the condition tells of the error
	return border
}

// Roles are those of the clusters that export a service, as the controller decides them.
func (f *Facts) Roles(service types.NamespacedName, sources []Source) map[string]merge.Role {
	observed := merge.Observed{
		Cluster: f.ID, Set: f.Set, Service: service, ServiceImport: f.Import(service), Prefer: f.Prefer, Properties: f.reader().Properties,
	}
	if observed.ServiceImport == nil {
		return nil
	}
	if told := meta.FindStatusCondition(observed.ServiceImport.Status.Conditions,
		merge.ConditionPreferCluster); told != nil && told.Reason == merge.ReasonHinted {
		observed.Nodes.Zones = []string{"known to the controller"}
	}
	roles := merge.Roles(observed, Contributions(sources))
	if at := slices.Index(roles[f.ID].Rules, "saturated"); at >= 0 {
		roles[f.ID].Rules[at] = f.saturated(service, sources)
	}
	if _, err := traffic.ParseBorder(observed.ServiceImport.Annotations[export.AnnotationWithin]); err != nil {
		for cluster, role := range roles {
			if role.Outside { // that is the first of its rules
				role.Rules = append([]string{"the border is invalid and admits " + f.ID + " alone"}, role.Rules[1:]...)
				roles[cluster] = role
			}
		}
	}
	return roles
}

// Refuses returns the rule by which the local cluster does not accept a service of a member, empty if it does or if
// that is unknown.
func (f *Facts) Refuses(m *Member, service types.NamespacedName) string {
	if f.SecretsUnseen != nil {
		return ""
	}
	own, valid := f.AcceptsOf(m)
	rule := input.Refuses(f.acceptsOfOthers(), own, service, local.Accepted(f.Namespaces[service.Namespace]))
	if rule != "" && !valid {
		rule = "the last valid " + rule
	}
	return rule
}

// saturated is why the local cluster is overloaded for a service, as its ServiceExport says.
func (f *Facts) saturated(service types.NamespacedName, sources []Source) string {
	serviceExport := f.Export(service)
	if serviceExport == nil || serviceExport.Annotations[export.AnnotationSaturated] == "true" {
		return "saturated"
	}
	ready, all := 0, 0
	for i := range sources {
		if !sources[i].Own || sources[i].View == nil {
			continue
		}
		for _, slice := range sources[i].View.Slices {
			for _, endpoint := range slice.Endpoints {
				if all++; ptr.Deref(endpoint.Conditions.Ready, true) {
					ready++
				}
			}
		}
	}
	return fmt.Sprintf("saturated-below %s: %d of %d ready", serviceExport.Annotations[export.AnnotationSaturatedBelow],
		ready, all)
}

// AcceptsOf returns the patterns that the Secret of a member has, nil if it has none. Those that are not valid have no
// effect: the patterns that the controller keeps instead are in its heartbeat.
func (f *Facts) AcceptsOf(m *Member) (own *accept.Patterns, valid bool) {
	if m.Secret == nil {
		return nil, true
	}
	text, found := m.Secret.Annotations[accept.Annotation]
	if !found {
		return nil, true
	}
	patterns, err := accept.Parse(text)
	if err != nil {
		patterns = accept.All
		if kept, found := f.published().Members[m.ID]; found {
			patterns = kept
		}
	}
	return &patterns, err == nil
}

// acceptsOfOthers returns the patterns of --accept, for members without patterns of their own. Without the Deployment
// they are those in the heartbeat.
func (f *Facts) acceptsOfOthers() accept.Patterns {
	if f.Accept != nil {
		patterns, _ := accept.Parse(strings.Join(f.Accept, ",")) // the controller does not start with others
		return patterns
	}
	patterns := f.published().Others
	flagged := slices.DeleteFunc(strings.Split(patterns.String(), ","), func(word string) bool {
		return local.Accepted(f.Namespaces[word]) // its label made it a pattern
	})
	patterns, _ = accept.Parse(strings.Join(flagged, ","))
	return patterns
}

// published is what the cluster accepts as its heartbeat says, everything if that is unknown.
func (f *Facts) published() accept.Policy {
	everything := accept.Policy{Others: accept.All}
	if f.Heartbeat == nil {
		return everything
	}
	policy, err := accept.Decode(member.DescriptionOf(f.Heartbeat).Accepts)
	if err != nil {
		return everything
	}
	return policy
}

// chosen returns the selector of the clusters that an export of a member is for, empty if it exports nothing, or to all.
func (m *Member) chosen(service types.NamespacedName) string {
	for _, slice := range m.Published {
		if member.ServiceOf(slice) != service || !export.IsManaged(slice) {
			continue
		}
		if clusters := export.ClustersOf(slice); clusters != "" {
			return clusters
		}
	}
	return ""
}

// publishes reports whether a member publishes slices of a service.
func (m *Member) publishes(service types.NamespacedName) bool {
	for _, slice := range m.Published {
		if member.ServiceOf(slice) == service && export.IsManaged(slice) {
			return true
		}
	}
	return false
}
