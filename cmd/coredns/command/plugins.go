// SPDX-License-Identifier: Apache-2.0

//go:build !slim

package command

// More of CoreDNS's own plugins, for Corefiles of tests. The program has all of them, which take long to compile. Each
// registers itself.
import (
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/template"
)
