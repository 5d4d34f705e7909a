// SPDX-License-Identifier: Apache-2.0

// Command coredns is CoreDNS, with all its plugins, and the plugin multicluster before kubernetes.
//
// With the build tag bed, which tests use, it has only the plugins of package command. With slim, for an image of its own, it
// has only the plugins in zone.go of that package.
package main

import "github.com/clusterset-dns/clusterset-dns/cmd/coredns/command"

// version is set with -ldflags.
var version string

func main() { command.Main(version) }
