// SPDX-License-Identifier: Apache-2.0

// Package conformance has conformance tests of Gateway API for ServiceImports as backends, in the layout of
// sigs.k8s.io/gateway-api/conformance.
package conformance

import "embed"

// Manifests has the manifests that the tests name, in addition to the suite's own.
//
//go:embed tests/*.yaml
var Manifests embed.FS
