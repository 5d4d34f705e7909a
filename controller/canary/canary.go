// SPDX-License-Identifier: Apache-2.0

// Package canary probes the pod network between clusters (docs/design.md). Each replica of the controller is a probe target
// (canary), which answers on a port of its pod. The leader publishes the canaries of its cluster in its heartbeat, and probes
// the canaries of the members.
package canary

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
)

const (
	// Service is the name of the headless Service in the controller's namespace whose endpoints are the canaries of the
	// cluster.
	Service = "clusterset-canary"
	// ExposedService is the name of a Service of the same pods, through which clusters of other networks reach them.
	ExposedService = "clusterset-canary-exposed"
	// Port is the name of the port of both Services.
	Port = "canary"
)

const (
	// most is how many canaries a cluster publishes.
	most = 8
	// maxBytes bounds the encoded canaries.
	maxBytes = 1024
	// leastPort is the lowest port of a canary of another cluster: no system service listens on it.
	leastPort = 1024
)

// Of returns the canaries among the endpoints of the Service: ready ones that do not terminate, alternately from each zone. If
// they are on several nodes, there is one for each node, so that the loss of a node is not the loss of most canaries. The
// result is independent of the order of the slices.
func Of(objects []*discoveryv1.EndpointSlice) []liveness.Canary {
	nodes, all := map[string]liveness.Canary{}, map[liveness.Canary]bool{}
	for _, slice := range objects {
		port := portOf(slice)
		for i := range slice.Endpoints {
			endpoint := &slice.Endpoints[i]
			if port == 0 || len(endpoint.Addresses) == 0 || !ptr.Deref(endpoint.Conditions.Ready, true) ||
				ptr.Deref(endpoint.Conditions.Terminating, false) {
				continue
			}
			address, err := netip.ParseAddr(endpoint.Addresses[0])
			if err != nil {
				continue // a name
			}
			found := liveness.Canary{Address: netip.AddrPortFrom(address, port), Zone: ptr.Deref(endpoint.Zone, "")}
			all[found] = true
			node := ptr.Deref(endpoint.NodeName, address.String())
			if known, ok := nodes[node]; !ok || found.Address.Compare(known.Address) < 0 {
				nodes[node] = found
			}
		}
	}
	canaries := slices.Collect(maps.Values(nodes))
	if len(nodes) == 1 {
		canaries = slices.Collect(maps.Keys(all))
	}
	slices.SortFunc(canaries, func(a, b liveness.Canary) int {
		return cmp.Or(cmp.Compare(a.Zone, b.Zone), a.Address.Compare(b.Address))
	})
	// turn is how many canaries of the same zone come before.
	turn, inZone := map[liveness.Canary]int{}, map[string]int{}
	for _, each := range canaries {
		turn[each] = inZone[each.Zone]
		inZone[each.Zone]++
	}
	slices.SortStableFunc(canaries, func(a, b liveness.Canary) int { return cmp.Compare(turn[a], turn[b]) })
	return canaries[:min(len(canaries), most)]
}

// portOf returns the port of the canaries in a slice, 0 if there is none.
func portOf(slice *discoveryv1.EndpointSlice) uint16 {
	for _, port := range slice.Ports {
		if ptr.Deref(port.Name, "") == Port && ptr.Deref(port.Protocol, corev1.ProtocolTCP) == corev1.ProtocolTCP {
			return uint16(ptr.Deref(port.Port, 0))
		}
	}
	return 0
}

// Encode returns the canaries as text, as "10.1.0.7:8081=zone-a,10.1.1.9:8081=zone-b"; empty for none.
func Encode(canaries []liveness.Canary) string {
	texts := make([]string, len(canaries))
	for i, each := range canaries {
		texts[i] = each.Address.String()
		if each.Zone != "" {
			texts[i] += "=" + each.Zone
		}
	}
	return strings.Join(texts, ",")
}

// Decode is the inverse of Encode, but drops canaries outside of the ranges: a hostile member could make its readers connect to
// any address. It returns an error if no controller writes such a text, or if no pod can have one of the addresses.
func Decode(text string, ranges []netip.Prefix) ([]liveness.Canary, error) {
	if text == "" {
		return nil, nil
	}
	parts := strings.Split(text, ",")
	if len(text) > maxBytes || len(parts) > most {
		return nil, fmt.Errorf("%d canaries in %d bytes: at most %d in %d", len(parts), len(text), most, maxBytes)
	}
	canaries := make([]liveness.Canary, 0, len(parts))
	for _, part := range parts {
		address, zone, _ := strings.Cut(part, "=")
		parsed, err := netip.ParseAddrPort(address)
		if err != nil {
			return nil, fmt.Errorf("canary %q: %w", part, err)
		}
		if parsed.Port() < leastPort {
			return nil, fmt.Errorf("canary %q: use port %d or higher", part, leastPort)
		}
		if err := export.CheckPodAddress(parsed.Addr()); err != nil {
			return nil, fmt.Errorf("canary: %w", err)
		}
		if problems := validation.IsValidLabelValue(zone); len(problems) > 0 {
			return nil, fmt.Errorf("zone of canary %q: %s", part, problems[0])
		}
		if slices.ContainsFunc(ranges, func(prefix netip.Prefix) bool { return prefix.Contains(parsed.Addr()) }) {
			canaries = append(canaries, liveness.Canary{Address: parsed, Zone: zone})
		}
	}
	return canaries, nil
}
