// SPDX-License-Identifier: Apache-2.0

// Command kubectl-clusterset is a kubectl plugin that joins clusters, diagnoses
// the set, and explains what a name resolves to: see docs/reference/kubectl-clusterset.md.
package main

import (
	"os"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/command"
)

// version is set with -ldflags.
var version string

func main() { os.Exit(command.Main(version)) }
