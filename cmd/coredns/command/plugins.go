// SPDX-License-Identifier: Apache-2.0

//go:build !slim

package command

// CoreDNS's own plugins that Corefiles of tests use besides. All of them, which the program has, take long to compile. Each
// registers itself.
import (
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/template"
)
