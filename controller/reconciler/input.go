// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/limits"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
	"github.com/clusterset-dns/clusterset-dns/controller/placement"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// podsPatience bounds the time in which a pass reads pods.
const podsPatience = 2 * time.Second

// Reasons of the condition Valid of an export, besides those of package export.
const (
	// InvalidDenied: the namespace matches --denied-namespaces.
	InvalidDenied = "NamespaceDenied"
)

// Input is everything that concerns one service.
type Input struct {
	Observed      merge.Observed
	Contributions []merge.Contribution
	// Problems are the problems of the exports, by cluster.
	Problems map[string][]export.Problem
	// Refused are the reasons why exports of members are not accepted, by cluster.
	Refused map[string]string
	// After is when the service is due again, 0 for never.
	After time.Duration

	memory export.Memory
	// kept has the members that publish the service or have copies, and the weight of the copies that are used instead of slices.
	kept map[*member.Member]limits.Weight
}

// Gather returns the current input for a pass over a service. It may read pods from the API server, and remembers state
// for the next pass over the service.
func (r *Reconciler) Gather(ctx context.Context, service types.NamespacedName) Input {
	limited, cancel := context.WithTimeout(ctx, podsPatience)
	defer cancel()
	in := Input{Observed: merge.Observed{Cluster: r.Cluster, Service: service, Place: r.here().Of}, kept: map[*member.Member]limits.Weight{}}
	if namespace := r.Local.Namespace(service.Namespace); namespace != nil && namespace.DeletionTimestamp == nil {
		in = r.gather(r.observe(service), r.Pods.Read(limited))
	} else { // its objects are deleted with it; a new namespace enqueues its services
		for _, m := range r.Members.List() {
			in.kept[m] = limits.Weight{}
		}
	}
	for m, copies := range in.kept {
		m.CountCopies(service, copies)
	}
	r.remember(service, in.memory)
	return in
}

// Look returns the input for a service as the caches show it. It changes nothing, so that a pass may run meanwhile.
func (r *Reconciler) Look(service types.NamespacedName) Input {
	return r.gather(r.observe(service), r.Pods.Known)
}

// gather returns the input for a service.
func (r *Reconciler) gather(of merge.Observed, ports func(corev1.ObjectReference) ([]corev1.ContainerPort, error)) Input {
	in := Input{
		Observed: of, Problems: map[string][]export.Problem{}, Refused: map[string]string{},
		kept: map[*member.Member]limits.Weight{},
	}
	observed, service := &in.Observed, of.Service
	if r.Denies(service.Namespace) {
		if observed.ServiceExport != nil {
			observed.Invalid = &export.Invalid{
				Reason: InvalidDenied,
				Message: fmt.Sprintf("The namespace %s takes no part in the cluster set: "+
					"it is on the controller's list of denied namespaces.", service.Namespace),
			}
		}
		return in
	}
	if observed.ServiceExport != nil {
		exporter, exported := r.exporter(observed.NodePorts), r.Local.Services.Get(service)
		exporter.HostPorts = ports
		if before, known := r.memories.Load(service); known {
			exporter.Before = before.(export.Memory)
		} else if !slices.ContainsFunc(export.SlicesOf(r.Cluster, of.EndpointSlices), func(slice *discoveryv1.EndpointSlice) bool {
			return export.IsExposed(slice) && len(slice.Endpoints) > 0
		}) {
			exporter.Before.ReadySince = map[string]time.Time{} // no earlier leader published nodes
		}
		view, problems, invalid := export.FromService(exporter, observed.ServiceExport, exported,
			slices.Concat(r.Local.KubernetesSlices(service), of.EndpointSlices))
		if view != nil && (!view.Absent() || keepsImport(of)) {
			own := Standing(r.Local.Namespace(r.Namespace))
			own.View, in.After, in.memory = view, view.After, view.Memory
			in.Contributions = append(in.Contributions, own)
			problems = append(problems, r.unreached(view)...)
			if view.NodePorts {
				observed.NodePortsFor = exported
			}
		}
		observed.Invalid, observed.Problems, in.Problems[r.Cluster] = invalid, problems, problems
	}
	labelled := ptr.Deref(r.Local.Namespace(service.Namespace), corev1.Namespace{}).Labels[scope.AcceptLabel] == "true"
	publishing, from := r.Members.Publishing(service), r.Source()
	concerned, copies := map[string]*member.Member{}, map[string][]*discoveryv1.EndpointSlice{}
	for _, slice := range of.EndpointSlices {
		cluster := slice.Labels[export.LabelSourceCluster]
		concerned[cluster], copies[cluster] = r.Members.Get(cluster), append(copies[cluster], slice)
	}
	for _, m := range publishing {
		concerned[m.Cluster()] = m
	}
	for _, cluster := range slices.Sorted(maps.Keys(concerned)) { // messages list them
		m := concerned[cluster]
		if m == nil {
			continue // the copies of a cluster that left end
		}
		in.kept[m] = limits.Weight{}
		if rule := r.Refusal(service, m.Accept(), labelled); rule != "" {
			if slices.Contains(publishing, m) {
				in.Refused[m.Cluster()] = rule
			}
			continue // its copies end, as if the export was withdrawn
		}
		published, verdict := r.read(m, service)
		if verdict.State == liveness.Gone {
			continue
		}
		from.Cluster, from.CIDRs, from.Keep = m.Cluster(), m.CIDRs(), verdict.Keep
		view, problems, used := export.FromSlices(from, service, published, copies[m.Cluster()])
		for _, slice := range used {
			in.kept[m] = in.kept[m].Plus(limits.WeightOf(slice))
		}
		in.Problems[m.Cluster()] = problems
		if view != nil {
			in.Contributions = append(in.Contributions, merge.Contribution{
				View: view, Demote: verdict.Demote, Rank: m.Rank(),
			})
		}
	}
	return in
}

// unreached returns the problem of an export of the local cluster for chosen clusters, none of which is a member.
func (r *Reconciler) unreached(view *export.View) []export.Problem {
	text := view.Slices[0].Clusters
	clusters, _ := scope.ParseAbsolute(text) // of a view, which has none that is invalid
	if text == "" || slices.ContainsFunc(r.Members.List(), func(m *member.Member) bool {
		is := scope.Cluster{ID: m.Cluster(), Properties: r.Tracker.Properties(m.Cluster())}
		return clusters.Selects(is, is)
	}) {
		return nil
	}
	return []export.Problem{{
		Reason: export.ReasonBadMetadata, Object: "ServiceExport " + view.Service.String() + ", annotation " + export.AnnotationClusters,
		Message: "it selects no member",
	}}
}

// Source returns the rules by which the local cluster reads slices of members. It lacks the id and the ranges of a
// member.
func (r *Reconciler) Source() export.Source {
	return export.Source{
		Owns: r.Local.Owns(r.ServiceCIDRs), Network: r.Properties.Network(),
		Reader: scope.Cluster{ID: r.Cluster, Properties: r.Properties.All()},
	}
}

// exporter returns the Exporter of a Service. nodePorts is its derived Service with node ports, nil for none.
func (r *Reconciler) exporter(nodePorts *corev1.Service) export.Exporter {
	from := export.Exporter{
		Cluster: r.Cluster, Network: r.Properties.Network(), Expose: r.Expose, NodePorts: nodePorts, Resolve: r.Frontends.Addresses,
		Gateways: r.Frontends.Gateways, HostPorts: r.Pods.Known, Now: r.Clock.Now(),
	}
	if r.Local.Nodes.HasSynced() {
		from.Node = r.Local.Node
	}
	return from
}

// Exposed returns the slices by which clusters of other networks reach a port of ProbeService, as if it were exported.
func (r *Reconciler) Exposed(port string) (exposed []*discoveryv1.EndpointSlice) {
	object := r.Local.Services.Get(r.ProbeService)
	if object == nil {
		r.memories.Delete(r.ProbeService)
		return nil
	}
	asExported := &v1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{
		Namespace: r.ProbeService.Namespace, Name: r.ProbeService.Name, CreationTimestamp: object.CreationTimestamp,
	}}
	view, _, _ := export.FromService(r.exporter(nil), asExported, object, r.Local.KubernetesSlices(r.ProbeService))
	if view == nil {
		return nil
	}
	r.remember(r.ProbeService, view.Memory)
	for _, slice := range view.Exposed {
		for _, target := range slice.Targets {
			exposed = append(exposed, &discoveryv1.EndpointSlice{
				Endpoints: slice.Endpoints,
				Ports:     []discoveryv1.EndpointPort{{Name: &port, Port: &target.Port}},
			})
		}
	}
	return exposed
}

// remember stores the memory of an export, or deletes it if it is empty.
func (r *Reconciler) remember(service types.NamespacedName, memory export.Memory) {
	if memory.ReadySince == nil && memory.Names == nil {
		r.memories.Delete(service)
	} else {
		r.memories.Store(service, memory)
	}
}

// names returns the names in all memories.
func (r *Reconciler) names() (names []string) {
	r.memories.Range(func(_, memory any) bool {
		names = append(names, memory.(export.Memory).Names...)
		return true
	})
	return names
}

// here returns the input of placements from the local cluster.
func (r *Reconciler) here() placement.Here {
	return placement.Here{
		Cluster: scope.Cluster{ID: r.Cluster, Properties: r.Properties.All()}, Properties: r.Tracker.Properties,
		Prefer: r.Prefer, Nodes: r.Local.Zones(),
	}
}

// Encoded returns the encoded size in bytes of the slices that Gather reads. It is cheap.
func (r *Reconciler) Encoded(service types.NamespacedName) int {
	size := r.Local.Encoded(service)
	for _, m := range r.Members.Publishing(service) {
		size += m.Encoded(service)
	}
	return size
}

// observe returns the objects of a service in the local cluster.
func (r *Reconciler) observe(service types.NamespacedName) merge.Observed {
	named := func(name string) *corev1.Service {
		return r.Local.Services.Get(types.NamespacedName{Namespace: service.Namespace, Name: name})
	}
	observed := merge.Observed{
		Cluster: r.Cluster, Service: service, APIVersion: v1beta1.GroupName + "/" + r.API.Version(),
		Place: r.here().Of, ServiceImport: r.API.Imports.Get(service), ServiceExport: r.API.Exports.Get(service),
		DerivedService: named(export.DerivedServiceName(service)), NodePorts: named(export.NodePortServiceName(service)),
		EndpointSlices: r.Local.ManagedSlices(service),
	}
	for _, cidr := range r.ServiceCIDRs {
		observed.IPFamilies = append(observed.IPFamilies, export.FamilyOf(cidr.Addr().String()))
	}
	if serviceImport := observed.ServiceImport; serviceImport != nil && observed.DerivedService == nil {
		observed.TakenIPs = r.Local.OtherHolders(
			types.NamespacedName{Namespace: service.Namespace, Name: export.DerivedServiceName(service)},
			serviceImport.Spec.IPs, merge.Adopted(serviceImport))
	}
	return observed
}

// keepsImport reports whether an export without its Service may have an import to keep: in the local cluster or, if the
// local cluster published slices for it before, in others. A ServiceExport is often seen a moment before its Service.
// Publishing nothing until then saves every other cluster two changes.
func keepsImport(of merge.Observed) bool {
	return of.ServiceImport != nil || len(export.SlicesOf(of.Cluster, of.EndpointSlices)) > 0
}

// Standing returns the contribution of the local cluster without its view, from the annotations of the namespace of the
// controller. The namespace may be nil.
func Standing(namespace *corev1.Namespace) (own merge.Contribution) {
	if namespace != nil {
		own.Demote = namespace.Annotations[memberstate.AnnotationDrain] == "true"
		own.Rank, _ = member.ParseRank(namespace.Annotations)
	}
	return own
}

// read returns the slices that a member publishes for a service, and the verdict on them: if they are not complete, the
// copies stay.
func (r *Reconciler) read(m *member.Member, service types.NamespacedName) ([]*discoveryv1.EndpointSlice, liveness.Verdict) {
	var published []*export.Packed
	var complete bool
	verdict := r.Tracker.Read(m.Cluster(), func() { published, complete = m.Read(service) })
	verdict.Keep = verdict.Keep || !complete
	return export.OpenAll(published), verdict
}
