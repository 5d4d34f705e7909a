// SPDX-License-Identifier: Apache-2.0

// Package controller holds the tests of the controller on real control planes.
//
// Pairs of clusters are shared by the tests of the package, and a test has a pair for itself while it runs: two
// controllers of one cluster would write the same objects. Each test has controllers of its own, which run in this
// process with the rights of deploy/rbac.yaml, and namespaces of its own.
package controller
