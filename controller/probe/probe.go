// SPDX-License-Identifier: Apache-2.0

// Package probe probes the pod network between clusters (docs/design.md). Each replica of the controller is a probe target,
// which answers on a port of its pod. The leader publishes the probe targets of its cluster in its heartbeat, and probes
// those of the members.
package probe

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

const (
	// Service is the name of the headless Service in the controller's namespace whose endpoints are the probe targets of the
	// cluster.
	Service = "clusterset-probe"
	// ExposedService is the name of a Service of the same pods, through which clusters of other networks reach them.
	ExposedService = "clusterset-probe-exposed"
	// Port is the name of the port of both Services.
	Port = "probe"
)

const (
	// most is how many probe targets a cluster publishes.
	most = 8
	// leastPort is the lowest port of a probe target of another cluster: no system service listens on it.
	leastPort = 1024
)

// Of returns the probe targets among the endpoints of the Service: ready ones that do not terminate. The result is independent of
// the order of the slices.
func Of(objects []*discoveryv1.EndpointSlice) (targets []netip.AddrPort) {
	for _, slice := range objects {
		at := slices.IndexFunc(slice.Ports, func(port discoveryv1.EndpointPort) bool { return ptr.Deref(port.Name, "") == Port })
		for i := range slice.Endpoints {
			endpoint := &slice.Endpoints[i]
			if at < 0 || len(endpoint.Addresses) == 0 || !export.IsReady(endpoint) ||
				ptr.Deref(endpoint.Conditions.Terminating, false) {
				continue
			}
			port := uint16(ptr.Deref(slice.Ports[at].Port, 0))
			if address, err := netip.ParseAddr(endpoint.Addresses[0]); err == nil { // else it is a name
				targets = append(targets, netip.AddrPortFrom(address, port))
			}
		}
	}
	slices.SortFunc(targets, netip.AddrPort.Compare)
	targets = slices.Compact(targets)
	return targets[:min(len(targets), most)]
}

// Encode returns the probe targets as text, as "10.1.0.7:8081,10.1.1.9:8081"; empty for none.
func Encode(targets []netip.AddrPort) string {
	texts := make([]string, len(targets))
	for i, each := range targets {
		texts[i] = each.String()
	}
	return strings.Join(texts, ",")
}

// Decode is the inverse of Encode, but drops probe targets outside of the ranges: a hostile member could make its readers connect
// to any address. It returns an error if no controller writes such a text, or if no pod can have one of the addresses.
func Decode(text string, ranges []netip.Prefix) ([]netip.AddrPort, error) {
	if text == "" {
		return nil, nil
	}
	parts := strings.Split(text, ",")
	if len(parts) > most {
		return nil, fmt.Errorf("%d probe targets: at most %d", len(parts), most)
	}
	targets := make([]netip.AddrPort, 0, len(parts))
	for _, part := range parts {
		parsed, err := netip.ParseAddrPort(part)
		if err != nil {
			return nil, fmt.Errorf("probe target %.100q: %w", part, err)
		}
		if parsed.Port() < leastPort {
			return nil, fmt.Errorf("probe target %q: use port %d or higher", part, leastPort)
		}
		if err := export.CheckPodAddress(parsed.Addr()); err != nil {
			return nil, fmt.Errorf("probe target: %w", err)
		}
		if slices.ContainsFunc(ranges, func(prefix netip.Prefix) bool { return prefix.Contains(parsed.Addr()) }) {
			targets = append(targets, parsed)
		}
	}
	slices.SortFunc(targets, netip.AddrPort.Compare)
	return slices.Compact(targets), nil
}
