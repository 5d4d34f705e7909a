// SPDX-License-Identifier: Apache-2.0

//go:build bed

package main

// CoreDNS's own plugins but for those that are rarely used.
import _ "github.com/clusterset-dns/clusterset-dns/cmd/coredns/plugins"
