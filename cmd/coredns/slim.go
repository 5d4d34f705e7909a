// SPDX-License-Identifier: Apache-2.0

//go:build slim

package main

import _ "github.com/clusterset-dns/clusterset-dns/cmd/coredns/plugins" // CoreDNS's own plugins but for those that are rarely used.
