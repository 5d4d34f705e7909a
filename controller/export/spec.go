// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// maxPorts bounds the ports of an exported Service.
const maxPorts = 100

// firstExport is the month of Kubernetes' first commit, the lower bound of creation times. The oldest export wins
// conflicts, so an earlier time would win them all. A time in the future only loses precedence.
var firstExport = time.Date(2014, time.June, 1, 0, 0, 0, 0, time.UTC)

// validSpec returns an unchecked spec with defaults, as a new Spec, or an error if a part is invalid. It reports exported
// metadata that it leaves out for the object.
func validSpec(in Spec, object string, found *problems) (*Spec, error) {
	out := in
	out.Created = in.Created.UTC().Truncate(1e9)
	if in.InternalTrafficPolicy != corev1.ServiceInternalTrafficPolicyLocal {
		out.InternalTrafficPolicy = corev1.ServiceInternalTrafficPolicyCluster
	}
	if in.SessionAffinity != corev1.ServiceAffinityClientIP {
		out.SessionAffinity, out.SessionAffinityConfig = corev1.ServiceAffinityNone, nil
	} else if config := in.SessionAffinityConfig; config == nil || config.ClientIP == nil || config.ClientIP.TimeoutSeconds == nil {
		out.SessionAffinityConfig = &corev1.SessionAffinityConfig{ // as the API server fills it in
			ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To(corev1.DefaultClientIPServiceAffinitySeconds)},
		}
	} else if seconds := *config.ClientIP.TimeoutSeconds; seconds <= 0 || seconds > 86400 {
		return nil, fmt.Errorf("session affinity timeout %d is not from 1 to 86400 seconds", seconds)
	}
	switch year := out.Created.Year(); {
	case year > 9999:
		return nil, fmt.Errorf("year %d of creation cannot be written", year)
	case out.Created.Before(firstExport):
		return nil, fmt.Errorf("its creation time %s is before Kubernetes existed: create the ServiceExport again with the clock of its API server corrected",
			out.Created.Format(time.RFC3339))
	case in.Type != v1beta1.ClusterSetIP && in.Type != v1beta1.Headless:
		return nil, fmt.Errorf("type %.100q is not known", in.Type)
	case len(in.IPFamilies) == 0:
		return nil, fmt.Errorf("it has no IP family")
	case len(in.Ports) > maxPorts:
		return nil, fmt.Errorf("it has %d ports: use at most %d", len(in.Ports), maxPorts)
	case in.TrafficDistribution != "" && len(validation.IsQualifiedName(in.TrafficDistribution)) > 0:
		return nil, fmt.Errorf("traffic distribution %.100q is not valid", in.TrafficDistribution)
	}
	for i, family := range in.IPFamilies {
		if (family != corev1.IPv4Protocol && family != corev1.IPv6Protocol) || slices.Contains(in.IPFamilies[:i], family) {
			return nil, fmt.Errorf("IP family %.100q is not known or repeated", family)
		}
	}
	out.Ports = nil
	for _, port := range in.Ports {
		if port.Name != "" && len(validation.IsDNS1123Label(port.Name)) > 0 || !slices.Contains(protocols, port.Protocol) || !validNumber(port.Number) ||
			port.AppProtocol != "" && len(validation.IsQualifiedName(port.AppProtocol)) > 0 {
			return nil, fmt.Errorf("port %.100q, %d/%.100s with appProtocol %.100q, is not valid", port.Name, port.Number, port.Protocol, port.AppProtocol)
		}
		if slices.ContainsFunc(out.Ports, func(p Port) bool {
			return p.Name == port.Name || p.Protocol == port.Protocol && p.Number == port.Number
		}) {
			return nil, fmt.Errorf("port %q, %d/%s, is repeated", port.Name, port.Number, port.Protocol)
		}
		out.Ports = append(out.Ports, port)
	}
	out.Labels = exportedMetadata("label", in.Labels, object, found)
	out.Annotations = exportedMetadata("annotation", in.Annotations, object, found)
	if size := len(marshal(out.Labels)) + len(marshal(out.Annotations)); size > maxMetadata {
		return nil, fmt.Errorf("its exported labels and annotations have %d bytes: use at most %d", size, maxMetadata)
	}
	return &out, nil
}

var protocols = []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}

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
