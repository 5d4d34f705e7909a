// SPDX-License-Identifier: Apache-2.0

//go:build slim

package main

// Those of CoreDNS's own plugins that a zone of its own needs.
import _ "github.com/clusterset-dns/clusterset-dns/cmd/coredns/plugins/zone"
