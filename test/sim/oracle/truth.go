// SPDX-License-Identifier: Apache-2.0

// Package oracle says what clients of a cluster set must see, whatever happens in it. Schedules hold the controller and the
// plugin against it.
//
//	service     what one cluster has under a name, and the requests that change it
//	operations  random changes: what application teams do while a schedule breaks things
//	truth       what the exports of all clusters must come to: what is imported, and what is answered
//	judge       holds the answers, and the copies, of one cluster against all that happened, while it happens
//	outcome     compares what a cluster has and answers with what the last words of all come to
//
// It is a second, small reading of KEP-1645 and of the DNS specification beside it, and shares nothing with the controller
// and the plugin. It is pure: it asks for no time, and has no random numbers, but those that it is given.
package oracle

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// A Port is one of a Service.
type Port struct {
	Name     string
	Protocol string
	Number   int32
}

// An Endpoint is one of a Service, with all conditions set.
type Endpoint struct {
	Address netip.Addr
	Host    string
	// Ready, Serving and Terminating are the conditions.
	Ready, Serving, Terminating bool
	// Node is the name of the node of the pod.
	Node string
}

// An Export is what one cluster shares of a service.
type Export struct {
	Service
	Cluster string
}

// An Import is what all clusters must agree on.
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

// Merge is what the valid exports of one service come to, false where there is
// none: KEP-1645, "Constraints and Conflict Resolution".
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
		// A headless name needs an address of each family of every backend: a headless Service without a selector has both.
		conflict(oldest.Headless && !export.Headless, "IPFamilyConflict")
		// The timeout is there with the affinity alone.
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

// union is each port of the oldest, and of each younger export those whose name and whose protocol and number are free.
// One without a name gets one where it is not alone.
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

// Usable are the addresses that a headless service is answered with, sorted:
// all that are ready, and where none is, those that serve while they terminate.
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

// A Node is one of a cluster.
type Node struct {
	Address netip.Addr
	Ready   bool
}

// Exposed returns the endpoints that clusters of other networks have of a service that is exposed by node ports, and whether
// they have it at all: each node that exists, with its address and the best conditions of its pods; none of them holds
// while the node is not ready. A headless service is exposed by pods with the address of their node, which none has here.
func Exposed(headless bool, pods []Endpoint, nodes map[string]Node) (endpoints []Endpoint, exposed bool) {
	if headless {
		return nil, !slices.ContainsFunc(pods, func(pod Endpoint) bool { return nodes[pod.Node].Address.IsValid() })
	}
	at := map[string]int{} // by the name of the node
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
