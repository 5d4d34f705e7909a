// SPDX-License-Identifier: Apache-2.0

package export

import (
	"net/netip"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
)

// maxEndpoints is the limit of the EndpointSlice API.
const maxEndpoints = 1000

// condition has what conditions point to. All endpoints share it, because endpoints are never changed in place.
var condition = map[bool]*bool{false: ptr.To(false), true: ptr.To(true)}

// Conditions returns the conditions of an endpoint with all three set. The pointers are shared.
func Conditions(ready, serving, terminating bool) discoveryv1.EndpointConditions {
	return discoveryv1.EndpointConditions{Ready: condition[ready], Serving: condition[serving], Terminating: condition[terminating]}
}

// IsReady reports whether an endpoint is ready, as it is without the condition (API of EndpointSlices).
func IsReady(endpoint *discoveryv1.Endpoint) bool { return ptr.Deref(endpoint.Conditions.Ready, true) }

// An endpointReader converts the endpoints of a slice to those of a view.
type endpointReader struct {
	addressType discoveryv1.AddressType
	// from is the member that publishes the endpoints, nil for the local cluster, whose endpoints keep nodeName and
	// targetRef.
	from    *Source
	exposed bool
	// demoted are the ascending indices of ready endpoints that a merge demoted.
	demoted []int
	object  string
	found   *problems
}

// read returns the valid endpoints. They share immutable parts with the input.
func (r *endpointReader) read(in []discoveryv1.Endpoint) []discoveryv1.Endpoint {
	if len(in) > maxEndpoints {
		r.found.add(ReasonBadEndpoint, r.object, "it has %d endpoints; those above %d are left out", len(in), maxEndpoints)
		in = in[:maxEndpoints]
	}
	out := make([]discoveryv1.Endpoint, 0, len(in))
	for i := range in {
		addresses := r.address(in[i].Addresses)
		if addresses == nil {
			continue
		}
		// While an endpoint is ready, even if by publishNotReadyAddresses, consumers ignore its other conditions.
		c := in[i].Conditions
		_, demoted := slices.BinarySearch(r.demoted, i)
		ready := ptr.Deref(c.Ready, true) || demoted
		endpoint := discoveryv1.Endpoint{
			Addresses:  addresses,
			Conditions: Conditions(ready, ready || ptr.Deref(c.Serving, true), !ready && ptr.Deref(c.Terminating, false)),
			Hostname:   r.text("hostname", in[i].Hostname, "-0123456789"),
			Zone:       r.text("zone", in[i].Zone, "-_.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
		}
		if r.from == nil {
			endpoint.NodeName = in[i].NodeName
			endpoint.TargetRef = in[i].TargetRef
		}
		out = append(out, endpoint)
	}
	return out
}

// address returns the first address of an endpoint in canonical form, nil if it is not valid. The API does not define the
// meaning of further addresses, and kube-proxy ignores them.
func (r *endpointReader) address(in []string) []string {
	refuse := func(reason Reason, format string, args ...any) []string {
		r.found.add(reason, r.object, format, args...)
		return nil
	}
	if len(in) == 0 {
		return refuse(ReasonBadEndpoint, "an endpoint has no address")
	}
	text := in[0]
	address, err := checkAddress(text, r.addressType)
	if err != nil {
		return refuse(ReasonBadAddress, "%v", err)
	}
	canonical := in[:1]
	if !address.Is4() && address.String() != text { // there is one form of an IPv4 address
		// Local slices may have any form; published slices have the canonical one.
		if r.from != nil {
			return refuse(ReasonBadAddress, "%q is not in canonical form, %s", text, address)
		}
		canonical = []string{address.String()}
	}
	switch {
	case r.from == nil:
	case r.from.Owns != nil && r.from.Owns(canonical[0], r.exposed):
		return refuse(ReasonBadAddress, "%s is an address of this cluster: of a node, the API server, or a range of Services or pods", address)
	case len(r.from.CIDRs) > 0 && !slices.ContainsFunc(r.from.CIDRs, func(p netip.Prefix) bool { return p.Contains(address) }):
		return refuse(ReasonForeignAddress, "%s is outside the ranges of its cluster", address)
	}
	return canonical
}

// text returns an optional field of an endpoint, nil if it is invalid. Lowercase letters and others are valid, but no punctuation
// at either end. With the regular expressions of Kubernetes, this was a quarter of a pass over a large service.
func (r *endpointReader) text(field string, value *string, others string) *string {
	if value == nil || *value == "" {
		return nil
	}
	invalid := func(c rune) bool { return (c < 'a' || c > 'z') && !strings.ContainsRune(others, c) }
	if len(*value) > validation.LabelValueMaxLength || strings.ContainsFunc(*value, invalid) || strings.Trim(*value, "-_.") != *value {
		r.found.add(ReasonBadEndpoint, r.object, "%s %.100q is not valid and left out", field, *value)
		return nil
	}
	return value
}
