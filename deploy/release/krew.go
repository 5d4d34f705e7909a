// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// A plugin is an archive of kubectl-clusterset.
type plugin struct {
	build
	sum [sha256.Size]byte
}

const repository = "https://github.com/clusterset-dns/clusterset-dns"

// krew returns the manifest with which krew, the plugin manager of kubectl, finds the archives.
func krew(o options, plugins []plugin) []byte {
	var text strings.Builder
	fmt.Fprintf(&text, `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: clusterset
spec:
  version: v%s
  homepage: %s
  shortDescription: Joins and checks clusters that share services
  description: |
    Joins clusters to a set that shares services by the Multi-Cluster Services
    API, exports services, and shows and checks the set. The clusters run
    clusterset-dns.
  platforms:
`, o.version, repository)
	for _, p := range plugins {
		fmt.Fprintf(&text, `    - selector:
        matchLabels: {os: %s, arch: %s}
      uri: %s/releases/download/v%s/%s
      sha256: %x
      bin: %s
`, p.os, p.arch, repository, o.version, p.archive(o), p.sum, p.binary())
	}
	return []byte(text.String())
}
