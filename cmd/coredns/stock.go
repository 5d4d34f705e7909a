// SPDX-License-Identifier: Apache-2.0

//go:build !slim && !bed

package main

import _ "github.com/coredns/coredns/core/plugin" // CoreDNS's own plugins.
