// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// A portKey identifies a port across clusters: it is what a client connects to.
type portKey struct {
	protocol corev1.Protocol
	number   int32
}

// maxPorts bounds the ports of an import. The Service behind an import of 500
// clusters that have 100 ports each would be larger than an API server stores.
const maxPorts = 300

// A union is the ports of all exports, at most maxPorts.
type union struct {
	// ports have unique names and unique keys. Only a single port may have no name.
	ports []v1beta1.ServicePort
	// keys has true for the keys of the ports, and false for those of the ports that maxPorts leaves out.
	keys map[portKey]bool
}

// unite merges the ports of views in their precedence, first by name and then by protocol and number: a port whose name
// or number is taken does not replace the earlier definition. A port without a name takes no name; in a union of
// several it is named after its protocol and number.
func unite(views []*export.View) union {
	u := union{ports: []v1beta1.ServicePort{}, keys: make(map[portKey]bool)}
	names := make(map[string]bool)
	for _, view := range views {
		for _, port := range view.Spec.Ports {
			key := portKey{port.Protocol, port.Number}
			if u.keys[key] || (port.Name != "" && names[port.Name]) {
				continue
			}
			if u.keys[key] = len(u.ports) < maxPorts; !u.keys[key] {
				continue
			}
			names[port.Name] = true
			merged := v1beta1.ServicePort{Name: port.Name, Protocol: port.Protocol, Port: port.Number}
			if port.AppProtocol != "" {
				merged.AppProtocol = ptr.To(port.AppProtocol)
			}
			u.ports = append(u.ports, merged)
		}
	}
	for i := range u.ports {
		if port := &u.ports[i]; port.Name == "" && len(u.ports) > 1 {
			port.Name = freeName(port, names)
			names[port.Name] = true
		}
	}
	return u
}

// freeName returns "<protocol>-<number>", with a suffix if another port has that name.
func freeName(port *v1beta1.ServicePort, taken map[string]bool) string {
	name := fmt.Sprintf("%s-%d", strings.ToLower(string(port.Protocol)), port.Port)
	free := name
	for i := 2; taken[free]; i++ {
		free = fmt.Sprintf("%s-%d", name, i)
	}
	return free
}

// portText formats a port for messages, as in "http:80/TCP".
func portText(port export.Port) string {
	text := fmt.Sprintf("%d/%s", port.Number, port.Protocol)
	if port.Name != "" {
		text = port.Name + ":" + text
	}
	if port.AppProtocol != "" {
		text += "(" + port.AppProtocol + ")"
	}
	return text
}
