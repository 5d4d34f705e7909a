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
	// Floor is plugin floor, with what another server answers.
	Floor Kind = "floor"
	// Idle has no plugin that watches, and answers any name.
	Idle Kind = "idle"
)

// plugin is the plugin's part of a Corefile. The namespaces are the only ones served, all where there are none.
func (k Kind) plugin(source string, namespaces ...string) string {
	options := fmt.Sprintf("        kubeconfig %s\n", source)
	if len(namespaces) > 0 {
		options += fmt.Sprintf("        namespaces %s\n", strings.Join(namespaces, " "))
	}
	switch k {
	case Ours:
		return fmt.Sprintf("    multicluster clusterset.local {\n%s    }\n", options)
	case Stock:
		return fmt.Sprintf(
			"    kubernetes cluster.local clusterset.local {\n%s        multicluster clusterset.local\n    }\n",
			options)
	case Floor:
		return fmt.Sprintf("    floor %s\n", source)
	default:
		return "    template IN A {\n        answer \"{{ .Name }} 5 IN A 192.0.2.1\"\n    }\n"
	}
}

// Corefile is that of a server of the kind on a loopback port. Its source is the path of a kubeconfig or, of Floor, the
// address of the server and the file of queries. The options go before its plugin, a line each.
func (k Kind) Corefile(port uint16, source string, namespaces []string, options ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".:%d {\n    bind 127.0.0.1\n", port)
	for _, option := range options {
		fmt.Fprintf(&b, "    %s\n", option)
	}
	b.WriteString(k.plugin(source, namespaces...))
	b.WriteString("}\n")
	return b.String()
}
