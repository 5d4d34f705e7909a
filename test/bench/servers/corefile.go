// SPDX-License-Identifier: Apache-2.0

// Package servers starts the servers that are compared, as processes of this machine, and tells what they use.
package servers

import "fmt"

// Kind says which of the compared plugins a server has.
type Kind string

// The kinds.
const (
	// Ours is plugin multicluster. Its source is the path of a kubeconfig.
	Ours Kind = "ours"
	// Floor is plugin floor, with what another server answers. Its source is the address of that server and the file of
	// queries.
	Floor Kind = "floor"
)

// corefile is that of a server of the kind on a loopback port.
func (k Kind) corefile(port, debug uint16, source string) string {
	plugin := "floor " + source
	if k == Ours {
		plugin = "multicluster clusterset.local {\n        kubeconfig " + source + "\n    }"
	}
	return fmt.Sprintf(".:%d {\n    bind 127.0.0.1\n    pprof 127.0.0.1:%d\n    %s\n}\n", port, debug, plugin)
}
