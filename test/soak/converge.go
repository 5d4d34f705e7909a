// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/test/soak/judge"
	"github.com/clusterset-dns/clusterset-dns/test/soak/truth"
)

// objects are what a cluster has.
type objects struct {
	exports  map[string]truth.Export // that are valid
	reported map[string]string       // conflicts of each ServiceExport, as its conditions have them
	imports  map[string]v1beta1.ServiceImport
	copies   map[string][]string // endpoints behind each import
}

// look reads what a cluster has.
func (c *cluster) look(ctx context.Context) (objects, error) {
	o := objects{
		exports: map[string]truth.Export{}, reported: map[string]string{},
		imports: map[string]v1beta1.ServiceImport{}, copies: map[string][]string{},
	}
	exports, err := c.mcs.MulticlusterV1beta1().ServiceExports(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return o, err
	}
	imports, err := c.mcs.MulticlusterV1beta1().ServiceImports(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return o, err
	}
	services, err := c.Client().CoreV1().Services(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return o, err
	}
	endpointSlices, err := c.Client().DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return o, err
	}
	present := map[string]truth.Export{}
	for i := range services.Items {
		service := &services.Items[i]
		export := truth.Export{Cluster: c.Name(), Headless: service.Spec.ClusterIP == "None", Affinity: string(service.Spec.SessionAffinity)}
		for _, port := range service.Spec.Ports {
			export.Ports = append(export.Ports, truth.Port{Name: port.Name, Protocol: string(port.Protocol), Number: port.Port})
		}
		present[service.Name] = export
	}
	own := map[string][]truth.Endpoint{}
	for i := range endpointSlices.Items {
		slice := &endpointSlices.Items[i]
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
			read := truth.Endpoint{
				Address: address, Host: ptr.Deref(endpoint.Hostname, ""), Ready: ptr.Deref(endpoint.Conditions.Ready, true),
				Serving: ptr.Deref(endpoint.Conditions.Serving, true), Terminating: ptr.Deref(endpoint.Conditions.Terminating, false),
			}
			if from == "" {
				own[name] = append(own[name], read)
			} else {
				o.copies[name] = append(o.copies[name], text(from, read))
			}
		}
	}
	for i := range exports.Items {
		export := &exports.Items[i]
		o.reported[export.Name] = conflictsOf(export)
		valid, ok := present[export.Name]
		if !ok {
			continue
		}
		valid.Created, valid.Endpoints = export.CreationTimestamp.Time, own[export.Name]
		valid.Labels, valid.Annotations = export.Spec.ExportedLabels, export.Spec.ExportedAnnotations
		o.exports[export.Name] = valid
	}
	for _, each := range imports.Items {
		o.imports[each.Name] = each
	}
	return o, nil
}

func text(cluster string, endpoint truth.Endpoint) string {
	return fmt.Sprintf("%s/%s/%s ready %v serving %v terminating %v", cluster, endpoint.Host, endpoint.Address,
		endpoint.Ready, endpoint.Serving, endpoint.Terminating)
}

func conflictsOf(export *v1beta1.ServiceExport) string {
	for _, condition := range export.Status.Conditions {
		if condition.Type == string(v1beta1.ServiceExportConditionConflict) && condition.Status == metav1.ConditionTrue {
			return condition.Reason
		}
	}
	return ""
}

// converged is nil where every cluster has and answers what the exports of all
// come to.
func converged(ctx context.Context, clusters map[string]*cluster) error {
	seen := map[string]objects{}
	for _, name := range names {
		o, err := clusters[name].look(ctx)
		if err != nil {
			return fmt.Errorf("read the objects of %s: %w", name, err)
		}
		seen[name] = o
	}
	for _, name := range append(serviceNames(), "never-exported") {
		var exports []truth.Export
		for _, cluster := range names {
			if export, ok := seen[cluster].exports[name]; ok {
				exports = append(exports, export)
			}
		}
		merged, imported := truth.Merge(exports)
		for _, cluster := range names {
			if err := clusters[cluster].has(ctx, name, seen[cluster], exports, merged, imported); err != nil {
				return fmt.Errorf("%s in %s: %w", name, cluster, err)
			}
		}
	}
	return nil
}

// has is nil where the cluster has and answers what a service comes to.
func (c *cluster) has(ctx context.Context, name string, o objects, exports []truth.Export, merged truth.Import, imported bool) error {
	got, exists := o.imports[name]
	if exists != imported {
		return fmt.Errorf("import: got %v, want %v", exists, imported)
	}
	var copies []string
	for _, export := range exports {
		for _, endpoint := range export.Endpoints {
			copies = append(copies, text(export.Cluster, endpoint))
		}
	}
	if err := same("endpoints", strings.Join(slices.Sorted(slices.Values(o.copies[name])), "\n"), strings.Join(slices.Sorted(slices.Values(copies)), "\n")); err != nil {
		return err
	}
	if _, own := o.exports[name]; own {
		if err := same("conflicts", o.reported[name], strings.Join(merged.Conflicts, ",")); err != nil {
			return err
		}
	}
	want := judge.Reply{Outcome: judge.NoName}
	if imported {
		if err := same("import", importText(readImport(&got)), importText(merged)); err != nil {
			return err
		}
		addresses := parsed(got.Spec.IPs)
		switch {
		case merged.Headless && len(addresses) > 0:
			return fmt.Errorf("a headless import has IPs %v", addresses)
		case merged.Headless:
			addresses = truth.Usable(exports)
		case len(addresses) != 1:
			return fmt.Errorf("the import has IPs %v", addresses)
		}
		if len(addresses) > 0 {
			want = judge.Reply{Outcome: judge.Answered, Addresses: addresses}
		}
	}
	reply := c.ask(ctx, name, dns.TypeA)
	slices.SortFunc(reply.Addresses, netip.Addr.Compare)
	return same("answer", fmt.Sprint(reply.Outcome, reply.Addresses), fmt.Sprint(want.Outcome, want.Addresses))
}

func same(what, got, want string) error {
	if got != want {
		return fmt.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
	return nil
}

// readImport is what an import says of what all clusters agree on.
func readImport(serviceImport *v1beta1.ServiceImport) truth.Import {
	read := truth.Import{
		Headless: serviceImport.Spec.Type == v1beta1.Headless, Affinity: string(serviceImport.Spec.SessionAffinity),
		Labels: exportedOf(serviceImport.Labels), Annotations: exportedOf(serviceImport.Annotations),
	}
	for _, port := range serviceImport.Spec.Ports {
		read.Ports = append(read.Ports, truth.Port{Name: port.Name, Protocol: string(port.Protocol), Number: port.Port})
	}
	for _, cluster := range serviceImport.Status.Clusters {
		read.Clusters = append(read.Clusters, cluster.Cluster)
	}
	return read
}

// exportedOf leaves out what the controller writes for itself.
func exportedOf(metadata map[string]string) map[string]string {
	exported := maps.Clone(metadata)
	maps.DeleteFunc(exported, func(key, _ string) bool { return strings.Contains(key, "kubernetes.io/") })
	return exported
}

// importText leaves the conflicts out, which no import tells.
func importText(read truth.Import) string {
	return fmt.Sprintf("headless %v, ports %v, affinity %s, labels %s, annotations %s, clusters %v",
		read.Headless, read.Ports, read.Affinity, mapText(read.Labels), mapText(read.Annotations), read.Clusters)
}

func mapText(m map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		pairs = append(pairs, key+"="+m[key])
	}
	return strings.Join(pairs, ",")
}
