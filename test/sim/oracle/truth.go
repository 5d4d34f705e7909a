// SPDX-License-Identifier: Apache-2.0

// Package oracle defines what clients of a cluster set must see, whatever happens. Schedules compare the controller and
// the plugin with it.
//
//	service     the state of a name in one cluster, and the requests that change it
//	operations  random changes: what application teams do while a schedule breaks things
//	truth       the correct result of all clusters' exports: imports and answers
//	judge       judges the answers and copies of one cluster during a schedule
//	outcome     compares the objects and answers of a cluster with the correct result at the end
//
// It is a second, small implementation of KEP-1645 and its DNS specification, and shares no code with the controller
// and the plugin. It is pure: times and random numbers are parameters.
package oracle

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// A Port is a port of a Service.
type Port struct {
	Name     string
	Protocol string
	Number   int32
}

// An Endpoint is an endpoint of a Service. All conditions are set.
type Endpoint struct {
	Address netip.Addr
	Host    string
	// Ready, Serving and Terminating are the conditions of the endpoint.
	Ready, Serving, Terminating bool
	// Node is the name of the pod's node.
	Node string
}

// An Export is what one cluster publishes of a service.
type Export struct {
	Service
	Cluster string
}

// An Import is the result on which all clusters must agree.
type Import struct {
	Headless            bool
	Ports               []Port
	Affinity            string
	Labels, Annotations map[string]string
	// Clusters are sorted.
	Clusters []string
	// Conflicts are the reasons, sorted, that every exporting cluster must report.
	Conflicts []string
}

// Merge returns the result of the valid exports of one service, or false if there are none: KEP-1645, "Constraints and
// Conflict Resolution".
func Merge(exports []Export) (Import, bool) {
	if len(exports) == 0 {
		return Import{}, false
	}
	ordered := slices.SortedFunc(slices.Values(exports), func(a, b Export) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Cluster, b.Cluster))
	})
	oldest := ordered[0]
	merged := Import{
		Headless: oldest.Headless, Affinity: oldest.Affinity,
		Labels: oldest.Labels, Annotations: oldest.Annotations,
		Ports: union(ordered),
	}
	conflict := func(is bool, reasons ...string) {
		if is {
			merged.Conflicts = append(merged.Conflicts, reasons...)
		}
	}
	for _, export := range ordered {
		merged.Clusters = append(merged.Clusters, export.Cluster)
		conflict(export.Headless != oldest.Headless, "TypeConflict")
		// A headless service needs an address of each family per backend: a headless Service without a selector has both.
		conflict(oldest.Headless && !export.Headless, "IPFamilyConflict")
		// The timeout exists only with the affinity.
		conflict(export.Affinity != oldest.Affinity, "SessionAffinityConflict", "SessionAffinityConfigConflict")
		conflict(!maps.Equal(export.Labels, oldest.Labels), "LabelsConflict")
		conflict(!maps.Equal(export.Annotations, oldest.Annotations), "AnnotationsConflict")
		conflict(!slices.Equal(sortedPorts(export.Ports), sortedPorts(oldest.Ports)), "PortConflict")
	}
	slices.Sort(merged.Clusters)
	slices.Sort(merged.Conflicts)
	merged.Conflicts = slices.Compact(merged.Conflicts)
	return merged, true
}

// union returns the ports of the oldest export, and each port of younger exports whose name, and whose protocol and
// number, are not taken. An unnamed port gets a name unless it is the only port.
func union(ordered []Export) []Port {
	var all []Port
	for _, export := range ordered {
		for _, port := range export.Ports {
			taken := slices.ContainsFunc(all, func(other Port) bool {
				return other.Name != "" && other.Name == port.Name ||
					other.Protocol == port.Protocol && other.Number == port.Number
			})
			if !taken {
				all = append(all, port)
			}
		}
	}
	for i := range all {
		if all[i].Name == "" && len(all) > 1 {
			all[i].Name = fmt.Sprintf("%s-%d", strings.ToLower(all[i].Protocol), all[i].Number)
		}
	}
	return all
}

func sortedPorts(ports []Port) []Port {
	return slices.SortedFunc(slices.Values(ports), func(a, b Port) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Protocol, b.Protocol),
			cmp.Compare(a.Number, b.Number))
	})
}

// Usable returns the addresses in the answer for a headless service, sorted: ready endpoints or, if there are none,
// endpoints that are serving and terminating.
func Usable(exports []Export) []netip.Addr {
	var ready, terminating []netip.Addr
	for _, export := range exports {
		for _, endpoint := range export.Endpoints {
			switch {
			case endpoint.Ready:
				ready = append(ready, endpoint.Address)
			case endpoint.Serving && endpoint.Terminating:
				terminating = append(terminating, endpoint.Address)
			}
		}
	}
	if len(ready) == 0 {
		ready = terminating
	}
	slices.SortFunc(ready, netip.Addr.Compare)
	return slices.Compact(ready)
}

// A Node is a node of a cluster.
type Node struct {
	Address netip.Addr
	Ready   bool
}

// Exposed returns the endpoints of a service with node ports, as clusters in other networks see them, and whether they
// see any: each existing node, with its address and the best conditions of its pods, or not ready if the node is not. A
// headless service needs pods with the address of their node, which do not occur here.
func Exposed(headless bool, pods []Endpoint, nodes map[string]Node) (endpoints []Endpoint, exposed bool) {
	if headless {
		return nil, !slices.ContainsFunc(pods, func(pod Endpoint) bool { return nodes[pod.Node].Address.IsValid() })
	}
	at := map[string]int{} // by name of the node
	for _, pod := range pods {
		node, exists := nodes[pod.Node]
		if !exists {
			continue
		}
		is := Endpoint{Address: node.Address}
		if node.Ready {
			is.Ready, is.Serving, is.Terminating = pod.Ready, pod.Serving, pod.Terminating
		}
		i, known := at[pod.Node]
		switch {
		case !known:
			at[pod.Node], endpoints = len(endpoints), append(endpoints, is)
		case !endpoints[i].Ready && (is.Ready || !endpoints[i].Serving):
			endpoints[i] = is
		}
	}
	return endpoints, true
}
