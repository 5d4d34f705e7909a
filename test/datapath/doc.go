// SPDX-License-Identifier: Apache-2.0

// Package datapath tests with packets what the two programs promise: real connections through real kube-proxies, counted
// by who answered. docs/design/datapath.md says how.
package datapath
