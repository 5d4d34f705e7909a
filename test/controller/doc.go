// SPDX-License-Identifier: Apache-2.0

// Package controller holds the tests of the controller on real control planes.
//
// Two clusters are shared by the tests of the package. Each test has
// controllers of its own, which run in this process with the rights of
// deploy/rbac.yaml, and namespaces of its own. The tests run one after the
// other: two controllers of one cluster would write the same objects.
package controller
