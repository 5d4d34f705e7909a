// SPDX-License-Identifier: Apache-2.0

// Command coredns is CoreDNS, with all its plugins, and the plugin multicluster before kubernetes.
//
// With the build tag slim it has those of package zone alone, for an image of its own; with bed those of package plugins,
// with which tests build it.
package main

import "github.com/clusterset-dns/clusterset-dns/cmd/coredns/command"

// version is set with -ldflags.
var version string

func main() { command.Main(version) }
