// SPDX-License-Identifier: Apache-2.0

// Package controller tests the controller on real control planes.
//
// The tests of the package share pairs of clusters. A test has exclusive use of a pair while it runs, because two
// controllers of one cluster would write the same objects. Each test starts its own controllers, which run in this
// process with the rights of deploy/rbac.yaml, and uses its own namespaces.
package controller
