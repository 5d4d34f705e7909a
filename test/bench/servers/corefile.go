// SPDX-License-Identifier: Apache-2.0

// Package servers starts the servers that are compared, as processes of this machine, and tells what they use.
package servers

import (
	"fmt"
	"strings"
)

// Kind says which of the compared plugins a server has.
type Kind string

// The kinds.
const (
	// Ours is plugin multicluster.
	Ours Kind = "ours"
	// Stock is CoreDNS's own plugin kubernetes with its option multicluster.
	Stock Kind = "stock"
	// Ceiling is a plugin that answers everything with one prebuilt record.
	Ceiling Kind = "ceiling"
	// Watch is Ceiling that also watches EndpointSlices and drops what it gets.
	Watch Kind = "watch"
)

// Kinds are those that are compared when they answer, in the order of tables.
var Kinds = []Kind{Ours, Stock, Ceiling}

// plugin is the plugin's part of a Corefile. The namespaces are the only ones served, all where there are none.
func (k Kind) plugin(kubeconfig string, namespaces ...string) string {
	options := fmt.Sprintf("        kubeconfig %s\n", kubeconfig)
	if len(namespaces) > 0 {
		options += fmt.Sprintf("        namespaces %s\n", strings.Join(namespaces, " "))
	}
	switch k {
	case Ours:
		return fmt.Sprintf("    multicluster clusterset.local {\n%s    }\n", options)
	case Stock:
		return fmt.Sprintf("    kubernetes cluster.local clusterset.local {\n%s        multicluster clusterset.local\n    }\n", options)
	case Watch:
		return fmt.Sprintf("    ceiling %s\n", kubeconfig)
	default:
		return "    ceiling\n"
	}
}

// Corefile is that of a server of the kind on a loopback port. The options go before its plugin, a line each.
func (k Kind) Corefile(port int, kubeconfig string, namespaces []string, options ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".:%d {\n    bind 127.0.0.1\n", port)
	for _, option := range options {
		fmt.Fprintf(&b, "    %s\n", option)
	}
	b.WriteString(k.plugin(kubeconfig, namespaces...))
	b.WriteString("}\n")
	return b.String()
}
