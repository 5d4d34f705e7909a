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

// A portKey is what makes two ports of different clusters the same port: what
// a client connects to.
type portKey struct {
	protocol corev1.Protocol
	number   int32
}

func keyOf(port export.Port) portKey { return portKey{port.Protocol, port.Number} }

// A union is the ports of all exports.
type union struct {
	// ports have unique names and unique keys. Only a single port may have no
	// name.
	ports []v1beta1.ServicePort
	// index finds a port by its key.
	index map[portKey]int
	// defined is the port as its cluster defines it, for each of ports.
	defined []export.Port
}

// unite merges the ports of views in their precedence, first by name and then
// by protocol and number: a port whose name or number is taken does not
// replace the older definition. A port without a name takes no name; in a
// union of several it is named after its protocol and number.
func unite(views []*export.View) union {
	u := union{index: make(map[portKey]int)}
	names := make(map[string]bool)
	for _, view := range views {
		for _, port := range view.Spec.Ports {
			if _, taken := u.index[keyOf(port)]; taken || (port.Name != "" && names[port.Name]) {
				continue
			}
			names[port.Name] = true
			u.index[keyOf(port)] = len(u.defined)
			u.defined = append(u.defined, port)
		}
	}
	u.ports = make([]v1beta1.ServicePort, 0, len(u.defined))
	for _, port := range u.defined {
		merged := v1beta1.ServicePort{Name: port.Name, Protocol: port.Protocol, Port: port.Number}
		if port.AppProtocol != "" {
			merged.AppProtocol = ptr.To(port.AppProtocol)
		}
		if port.Name == "" && len(u.defined) > 1 {
			merged.Name = freeName(port, names)
			names[merged.Name] = true
		}
		u.ports = append(u.ports, merged)
	}
	return u
}

// freeName is "<protocol>-<number>", with a number added where a cluster gave
// that very name to another port.
func freeName(port export.Port, taken map[string]bool) string {
	name := fmt.Sprintf("%s-%d", strings.ToLower(string(port.Protocol)), port.Number)
	free := name
	for i := 2; taken[free]; i++ {
		free = fmt.Sprintf("%s-%d", name, i)
	}
	return free
}

// portText is a port as messages show it, as in "http:80/TCP".
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
