// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"slices"
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

func keyOf(port export.Port) portKey { return portKey{port.Protocol, port.Number} }

// maxPorts bounds the ports of an import. The Service behind an import of 500
// clusters that have 100 ports each would be larger than an API server stores.
const maxPorts = 300

// A union is the ports of all exports, at most maxPorts.
type union struct {
	// ports have unique names and unique keys. Only a single port may have no name.
	ports []v1beta1.ServicePort
	// index finds a port by its key.
	index map[portKey]int
	// defined is the port as its cluster defines it, for each of ports.
	defined []export.Port
	// left are the ports that maxPorts leaves out.
	left map[portKey]bool
}

// unite merges the ports of views in their precedence, first by name and then by protocol and number: a port whose name
// or number is taken does not replace the earlier definition. A port without a name takes no name; in a union of
// several it is named after its protocol and number.
func unite(views []*export.View) union {
	u := union{index: make(map[portKey]int), left: make(map[portKey]bool)}
	names := make(map[string]bool)
	for _, view := range views {
		for _, port := range view.Spec.Ports {
			key := keyOf(port)
			if _, taken := u.index[key]; taken || (port.Name != "" && names[port.Name]) {
				continue
			}
			if len(u.defined) == maxPorts {
				u.left[key] = true
				continue
			}
			names[port.Name] = true
			u.index[key] = len(u.defined)
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

// A portSet is the ports of one export, which are unique.
type portSet map[export.Port]struct{}

func setOf(ports []export.Port) portSet {
	set := make(portSet, len(ports))
	for _, port := range ports {
		set[port] = struct{}{}
	}
	return set
}

func (s portSet) has(port export.Port) bool {
	_, has := s[port]
	return has
}

// equal reports whether the ports of an export are the same, in any order.
func (s portSet) equal(ports []export.Port) bool {
	return len(s) == len(ports) && !slices.ContainsFunc(ports, func(port export.Port) bool { return !s.has(port) })
}

// maxDetails bounds the differences of one property that a message lists.
const maxDetails = 10

// details are the differences of one property, as sentences.
type details struct {
	sentences []string
	more      int
}

// say adds a sentence, which is not called beyond maxDetails.
func (d *details) say(sentence func() string) {
	if len(d.sentences) < maxDetails {
		d.sentences = append(d.sentences, sentence())
	} else {
		d.more++
	}
}

// all returns the sentences, each after a space.
func (d *details) all() string {
	text := ""
	for _, sentence := range d.sentences {
		text += " " + sentence
	}
	if d.more > 0 {
		text += fmt.Sprintf(" %d more differences.", d.more)
	}
	return text
}

// portDetails reports how each port was merged that differs from the first export, in one sentence each.
func portDetails(views []*export.View, merged union) string {
	first := setOf(views[0].Spec.Ports)
	var found details
	for i, port := range merged.defined {
		if port.Name != merged.ports[i].Name {
			found.say(func() string {
				return fmt.Sprintf("%q is named %q, because only a single port can have no name.", portText(port),
					merged.ports[i].Name)
			})
		}
	}
	for _, view := range views[1:] {
		has := make(map[portKey]bool, len(view.Spec.Ports))
		for _, port := range view.Spec.Ports {
			has[keyOf(port)] = true
			if !first.has(port) {
				found.say(func() string { return became(port, view.Cluster, merged) })
			}
		}
		for _, port := range views[0].Spec.Ports {
			if !has[keyOf(port)] {
				found.say(func() string { return fmt.Sprintf("%q is missing in %q.", portText(port), view.Cluster) })
			}
		}
	}
	text := found.all()
	if len(merged.left) > 0 {
		text += fmt.Sprintf(" Ports not served, because an import has at most %d: %d.", maxPorts, len(merged.left))
	}
	return text
}

// became reports how a port was merged that the first export does not have.
func became(port export.Port, cluster string, merged union) string {
	i, served := merged.index[keyOf(port)]
	switch {
	case !served && merged.left[keyOf(port)]:
		return fmt.Sprintf("%q of %q is not served, because the import has %d ports already.", portText(port), cluster,
			maxPorts)
	case !served:
		return fmt.Sprintf("%q of %q is not served, because its name is taken.", portText(port), cluster)
	case merged.defined[i] == port:
		return fmt.Sprintf("%q of %q is added.", portText(port), cluster)
	}
	return fmt.Sprintf("%q of %q is served as %q.", portText(port), cluster, portText(merged.defined[i]))
}

// freeName returns "<protocol>-<number>", with a suffix if another port has that name.
func freeName(port export.Port, taken map[string]bool) string {
	name := fmt.Sprintf("%s-%d", strings.ToLower(string(port.Protocol)), port.Number)
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
