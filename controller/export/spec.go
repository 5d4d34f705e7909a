// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// maxPorts bounds the ports of an exported Service.
const maxPorts = 100

// firstExport is the month of Kubernetes' first commit, the lower bound of creation times. The oldest export wins
// conflicts, so an earlier time would win them all. A time in the future only loses precedence.
var firstExport = time.Date(2014, time.June, 1, 0, 0, 0, 0, time.UTC)

// validSpec returns the valid part of an unchecked spec with defaults, as a new Spec. It reports what it leaves out for
// the object, and returns an error if no part is usable.
func validSpec(in Spec, object string, found *problems) (*Spec, error) {
	out := Spec{Type: in.Type, Overloaded: in.Overloaded}
	out.Created = in.Created.UTC().Truncate(1e9)
	if year := out.Created.Year(); year > 9999 {
		return nil, fmt.Errorf("year %d of creation cannot be written", year)
	}
	if out.Created.Before(firstExport) {
		return nil, fmt.Errorf("its creation time %s is before Kubernetes existed: create the ServiceExport again with the clock of its API server corrected",
			out.Created.Format(time.RFC3339))
	}
	if in.Type != v1beta1.ClusterSetIP && in.Type != v1beta1.Headless {
		return nil, fmt.Errorf("type %.100q is not known", in.Type)
	}
	out.Ports = validPorts(in.Ports, object, found)
	for _, family := range in.IPFamilies {
		if (family != corev1.IPv4Protocol && family != corev1.IPv6Protocol) || slices.Contains(out.IPFamilies, family) {
			found.add(ReasonBadSnapshot, object, "IP family %.100q is not known or repeated", family)
			continue
		}
		out.IPFamilies = append(out.IPFamilies, family)
	}
	if len(out.IPFamilies) == 0 {
		return nil, fmt.Errorf("it has no IP family")
	}

	out.SessionAffinity = known(found, object, "session affinity", in.SessionAffinity, corev1.ServiceAffinityNone,
		corev1.ServiceAffinityClientIP)
	if out.SessionAffinity == corev1.ServiceAffinityClientIP {
		out.SessionAffinityConfig = validAffinityConfig(in.SessionAffinityConfig, object, found)
	}
	out.InternalTrafficPolicy = known(found, object, "internal traffic policy", in.InternalTrafficPolicy,
		corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal)
	out.TrafficDistribution = in.TrafficDistribution
	if in.TrafficDistribution != "" && len(validation.IsQualifiedName(in.TrafficDistribution)) > 0 {
		found.add(ReasonBadSnapshot, object, "traffic distribution %.100q is not valid", in.TrafficDistribution)
		out.TrafficDistribution = ""
	}
	out.Labels, out.Annotations = exportedMetadata(in.Labels, in.Annotations, object, found)
	return &out, nil
}

// known returns the value of a field if it is among values, else the first of values, and adds a problem unless it is empty.
func known[T ~string](found *problems, object, field string, value T, values ...T) T {
	if slices.Contains(values, value) {
		return value
	}
	if value != "" {
		found.add(ReasonBadSnapshot, object, "%s %.100q is not known", field, value)
	}
	return values[0]
}

func validPorts(in []Port, object string, found *problems) []Port {
	var out []Port // at most maxPorts
	for _, port := range in {
		if err := checkPort(port); err != nil {
			found.add(ReasonBadSnapshot, object, "port %.100q: %v", port.Name, err)
			continue
		}
		if slices.ContainsFunc(out, func(p Port) bool {
			return p.Name == port.Name || p.Protocol == port.Protocol && p.Number == port.Number
		}) {
			found.add(ReasonBadSnapshot, object, "port %q, %d/%s, is repeated", port.Name, port.Number, port.Protocol)
			continue
		}
		if port.AppProtocol != "" && len(validation.IsQualifiedName(port.AppProtocol)) > 0 {
			found.add(ReasonBadSnapshot, object, "port %q: appProtocol %.100q is not valid", port.Name,
				port.AppProtocol)
			port.AppProtocol = ""
		}
		out = append(out, port)
	}
	return out
}

func checkPort(port Port) error {
	switch {
	case port.Name != "" && len(validation.IsDNS1123Label(port.Name)) > 0:
		return fmt.Errorf("the name is not a DNS label")
	case !knownProtocol(port.Protocol):
		return fmt.Errorf("protocol %.100q is not known", port.Protocol)
	case !validNumber(port.Number):
		return fmt.Errorf("%d is not a port number", port.Number)
	}
	return nil
}

func validAffinityConfig(in *corev1.SessionAffinityConfig, object string,
	found *problems,
) *corev1.SessionAffinityConfig {
	if in == nil || in.ClientIP == nil || in.ClientIP.TimeoutSeconds == nil {
		return nil
	}
	seconds := *in.ClientIP.TimeoutSeconds
	if seconds <= 0 || seconds > 86400 {
		found.add(ReasonBadSnapshot, object, "session affinity timeout %d is not from 1 to 86400 seconds", seconds)
		return nil
	}
	return &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &seconds}}
}

func knownProtocol(protocol corev1.Protocol) bool {
	return protocol == corev1.ProtocolTCP || protocol == corev1.ProtocolUDP || protocol == corev1.ProtocolSCTP
}

func validNumber(number int32) bool { return number >= 1 && number <= 65535 }

// FamilyOf returns the family of an IP, empty if it is none, such as "None".
func FamilyOf(ip string) corev1.IPFamily {
	address, err := netip.ParseAddr(ip)
	switch {
	case err != nil:
		return ""
	case address.Is4():
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}
