// SPDX-License-Identifier: Apache-2.0

// Package tests has the tests in the form of sigs.k8s.io/gateway-api/conformance/tests. There, the declarations of this
// file are in other packages: ConformanceTests in its own main.go, and SupportServiceImport in pkg/features.
package tests

import (
	confsuite "sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/pkg/features"
)

// SupportServiceImport indicates support for ServiceImports of the Multi-Cluster Services API as backends of every kind
// of Route that the implementation supports.
const SupportServiceImport features.FeatureName = "ServiceImport"

// ConformanceTests are all tests of this package.
var ConformanceTests []confsuite.ConformanceTest
