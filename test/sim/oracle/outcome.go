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
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// Objects are the results of all exports in one namespace of one cluster.
type Objects struct {
	// Imports are indexed by name.
	Imports map[string]*v1beta1.ServiceImport
	// Held are the endpoints of each import, by name and source cluster.
	Held map[string]map[string][]Endpoint

	reported map[string]string // conflicts of each ServiceExport, from its conditions
}

// A Reply is the reply to one query for the addresses of a service.
type Reply struct {
	// Name is the name of the service.
	Name      string
	At        time.Time
	Code      int // NOERROR, NXDOMAIN, or SERVFAIL
	Addresses []netip.Addr
}

func (r Reply) String() string { return fmt.Sprint(dns.RcodeToString[r.Code], r.Addresses) }

// Read converts the objects of a cluster.
func Read(exports []*v1beta1.ServiceExport, imports []*v1beta1.ServiceImport, endpointSlices []*discoveryv1.EndpointSlice) (Objects, error) {
	o := Objects{
		Imports: map[string]*v1beta1.ServiceImport{}, Held: map[string]map[string][]Endpoint{}, reported: map[string]string{},
	}
	for _, slice := range endpointSlices {
		from, name := slice.Labels[v1beta1.LabelSourceCluster], slice.Labels[v1beta1.LabelServiceName]
		if from == "" {
			continue
		}
		if o.Held[name] == nil {
			o.Held[name] = map[string][]Endpoint{}
		}
		for _, endpoint := range slice.Endpoints {
			address, err := netip.ParseAddr(endpoint.Addresses[0])
			if err != nil {
				return o, err
			}
			o.Held[name][from] = append(o.Held[name][from], Endpoint{
				Address: address, Host: ptr.Deref(endpoint.Hostname, ""),
				Ready:       ptr.Deref(endpoint.Conditions.Ready, true),
				Serving:     ptr.Deref(endpoint.Conditions.Serving, true),
				Terminating: ptr.Deref(endpoint.Conditions.Terminating, false),
			})
		}
	}
	for _, each := range exports {
		o.reported[each.Name] = conflictsOf(each)
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

// Check returns nil if the reader's objects and answers are the correct result of all clusters' exports. ask must
// return the reply to a query for the IPv4 addresses of a service.
func (j *Judge) Check(names []string, o Objects, ask func(name string) Reply) error {
	for _, name := range names {
		var exports []Export
		for _, cluster := range j.clusters {
			if words := j.words[key{cluster, name}]; len(words) > 0 && words[len(words)-1].Shared() {
				exports = append(exports, Export{words[len(words)-1].Service, cluster})
			}
		}
		want, err := o.has(j.reader, name, exports)
		if err == nil {
			reply := ask(name)
			slices.SortFunc(reply.Addresses, netip.Addr.Compare)
			err = same("answer", reply.String(), want.String())
		}
		if err != nil {
			return fmt.Errorf("%s in %s: %w", name, j.reader, err)
		}
	}
	return nil
}

// has checks the objects of a service against its exports, and returns the expected reply.
func (o Objects) has(reader, name string, exports []Export) (Reply, error) {
	want := Reply{Code: dns.RcodeNameError}
	merged, imported := Merge(exports)
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
	if slices.Contains(merged.Clusters, reader) {
		if err := same("conflicts", o.reported[name], strings.Join(merged.Conflicts, ",")); err != nil {
			return want, err
		}
	}
	if !imported {
		return want, nil
	}
	merged.Conflicts = nil // which imports do not show
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

// readImport returns the properties of an import on which all clusters must agree.
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

// exportedOf removes the keys that the controller itself sets.
func exportedOf(metadata map[string]string) map[string]string {
	exported := maps.Clone(metadata)
	maps.DeleteFunc(exported, func(key, _ string) bool {
		return strings.Contains(key, "kubernetes.io/") || strings.Contains(key, "clusterset-dns.github.io/")
	})
	return exported
}

// Addresses returns the valid addresses among texts.
func Addresses(texts []string) (addresses []netip.Addr) {
	for _, text := range texts {
		if address, err := netip.ParseAddr(text); err == nil {
			addresses = append(addresses, address)
		}
	}
	return addresses
}
