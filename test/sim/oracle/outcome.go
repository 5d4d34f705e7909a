// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// Objects are what one cluster has in one namespace.
type Objects struct {
	// Network is that of the pods of the cluster.
	Network string
	// Exports are those that are valid, by name.
	Exports map[string]Export
	// Imports are by name.
	Imports map[string]*v1beta1.ServiceImport
	// Held are the endpoints behind each import, by name and source cluster.
	Held map[string]map[string][]Endpoint

	reported map[string]string // conflicts of each ServiceExport, as its conditions have them
}

// A Reply is the reply to one query for the addresses of a service.
type Reply struct {
	// Name is that of the service.
	Name      string
	At        time.Time
	Code      int // NOERROR, NXDOMAIN, or SERVFAIL
	Addresses []netip.Addr
}

func (r Reply) String() string { return fmt.Sprint(dns.RcodeToString[r.Code], r.Addresses) }

// Read returns the objects of a cluster, whose pods are in a network and which has some nodes.
func Read(cluster, network string, nodes map[string]Node, exports []*v1beta1.ServiceExport, imports []*v1beta1.ServiceImport,
	services []*corev1.Service, endpointSlices []*discoveryv1.EndpointSlice,
) (Objects, error) {
	o := Objects{
		Network: network, Exports: map[string]Export{}, Imports: map[string]*v1beta1.ServiceImport{},
		Held: map[string]map[string][]Endpoint{}, reported: map[string]string{},
	}
	present := map[string]Export{}
	for _, service := range services {
		export := Export{Cluster: cluster, DualStack: len(service.Spec.IPFamilies) > 1, Network: network, Nodes: nodes}
		export.Headless, export.Affinity = service.Spec.ClusterIP == corev1.ClusterIPNone, string(service.Spec.SessionAffinity)
		for _, port := range service.Spec.Ports {
			export.Ports = append(export.Ports,
				Port{Name: port.Name, Protocol: string(port.Protocol), Number: port.Port})
		}
		present[service.Name] = export
	}
	own := map[string][]Endpoint{}
	for _, slice := range endpointSlices {
		from := slice.Labels[v1beta1.LabelSourceCluster]
		name := slice.Labels[discoveryv1.LabelServiceName]
		if from != "" {
			name = slice.Labels[v1beta1.LabelServiceName]
		}
		for _, endpoint := range slice.Endpoints {
			address, err := netip.ParseAddr(endpoint.Addresses[0])
			if err != nil {
				return o, err
			}
			read := Endpoint{
				Address: address, Host: ptr.Deref(endpoint.Hostname, ""), Node: ptr.Deref(endpoint.NodeName, ""),
				Ready:       ptr.Deref(endpoint.Conditions.Ready, true),
				Serving:     ptr.Deref(endpoint.Conditions.Serving, true),
				Terminating: ptr.Deref(endpoint.Conditions.Terminating, false),
			}
			if from == "" {
				own[name] = append(own[name], read)
				continue
			}
			if o.Held[name] == nil {
				o.Held[name] = map[string][]Endpoint{}
			}
			o.Held[name][from] = append(o.Held[name][from], read)
		}
	}
	for _, export := range exports {
		o.reported[export.Name] = conflictsOf(export)
		valid, ok := present[export.Name]
		if !ok {
			continue
		}
		valid.Name, valid.Present, valid.Exported = export.Name, true, true
		valid.Created, valid.Endpoints = export.CreationTimestamp.Time, own[export.Name]
		valid.Labels, valid.Annotations = export.Spec.ExportedLabels, export.Spec.ExportedAnnotations
		o.Exports[export.Name] = valid
	}
	for _, each := range imports {
		o.Imports[each.Name] = each
	}
	return o, nil
}

func text(cluster string, endpoint Endpoint) string {
	return fmt.Sprintf("%s/%s/%s ready %v serving %v terminating %v", cluster, endpoint.Host, endpoint.Address,
		endpoint.Ready, endpoint.Serving, endpoint.Terminating)
}

func conflictsOf(export *v1beta1.ServiceExport) string {
	for _, condition := range export.Status.Conditions {
		if condition.Type == string(v1beta1.ServiceExportConditionConflict) &&
			condition.Status == metav1.ConditionTrue {
			return condition.Reason
		}
	}
	return ""
}

// Check is nil if every cluster has and answers what the exports of all come to. seen has the objects by cluster, and
// ask returns the reply to a query for the IPv4 addresses of a service.
func Check(names []string, seen map[string]Objects, ask func(cluster, name string) Reply) error {
	for _, name := range names {
		var all []Export
		for _, cluster := range slices.Sorted(maps.Keys(seen)) {
			if export, ok := seen[cluster].Exports[name]; ok {
				all = append(all, export)
			}
		}
		for _, cluster := range slices.Sorted(maps.Keys(seen)) {
			o := seen[cluster]
			exports := In(o.Network, all)
			merged, imported := Merge(exports)
			want, err := o.has(name, exports, merged, imported)
			if err == nil {
				reply := ask(cluster, name)
				slices.SortFunc(reply.Addresses, netip.Addr.Compare)
				err = same("answer", reply.String(), want.String())
			}
			if err != nil {
				return fmt.Errorf("%s in %s: %w", name, cluster, err)
			}
		}
	}
	return nil
}

// has returns the reply that is due if the cluster has what a service comes to.
func (o Objects) has(name string, exports []Export, merged Import, imported bool) (Reply, error) {
	want := Reply{Code: dns.RcodeNameError}
	got, exists := o.Imports[name]
	if exists != imported {
		return want, fmt.Errorf("import: got %v, want %v", exists, imported)
	}
	var held, copies []string
	for cluster, endpoints := range o.Held[name] {
		for _, endpoint := range endpoints {
			held = append(held, text(cluster, endpoint))
		}
	}
	for _, export := range exports {
		for _, endpoint := range export.Endpoints {
			copies = append(copies, text(export.Cluster, endpoint))
		}
	}
	slices.Sort(held)
	slices.Sort(copies)
	if err := same("endpoints", strings.Join(held, "\n"), strings.Join(copies, "\n")); err != nil {
		return want, err
	}
	if _, own := o.Exports[name]; own {
		if err := same("conflicts", o.reported[name], strings.Join(merged.Conflicts, ",")); err != nil {
			return want, err
		}
	}
	if !imported {
		return want, nil
	}
	merged.Conflicts = nil // which no import tells
	if err := same("import", fmt.Sprintf("%+v", readImport(got)), fmt.Sprintf("%+v", merged)); err != nil {
		return want, err
	}
	addresses := Addresses(got.Spec.IPs)
	switch {
	case merged.Headless && len(addresses) > 0:
		return want, fmt.Errorf("a headless import has IPs %v", addresses)
	case merged.Headless:
		addresses = Usable(exports)
	case len(addresses) != 1:
		return want, fmt.Errorf("the import has IPs %v", addresses)
	}
	if len(addresses) > 0 {
		want = Reply{Addresses: addresses}
	}
	return want, nil
}

func same(what, got, want string) error {
	if got != want {
		return fmt.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
	return nil
}

// readImport is what an import says of what all clusters agree on.
func readImport(serviceImport *v1beta1.ServiceImport) Import {
	read := Import{
		Headless: serviceImport.Spec.Type == v1beta1.Headless, Affinity: string(serviceImport.Spec.SessionAffinity),
		Labels: exportedOf(serviceImport.Labels), Annotations: exportedOf(serviceImport.Annotations),
	}
	for _, port := range serviceImport.Spec.Ports {
		read.Ports = append(read.Ports, Port{Name: port.Name, Protocol: string(port.Protocol), Number: port.Port})
	}
	for _, cluster := range serviceImport.Status.Clusters {
		read.Clusters = append(read.Clusters, cluster.Cluster)
	}
	return read
}

// exportedOf leaves out what the controller writes for itself.
func exportedOf(metadata map[string]string) map[string]string {
	exported := maps.Clone(metadata)
	maps.DeleteFunc(exported, func(key, _ string) bool {
		return strings.Contains(key, "kubernetes.io/") || strings.Contains(key, "clusterset-dns.github.io/")
	})
	return exported
}

// Addresses are the addresses among texts.
func Addresses(texts []string) (addresses []netip.Addr) {
	for _, text := range texts {
		if address, err := netip.ParseAddr(text); err == nil {
			addresses = append(addresses, address)
		}
	}
	return addresses
}
