// SPDX-License-Identifier: Apache-2.0

// Package datapath tests with packets what the two programs promise: real connections through real kube-proxies,
// counted by the pod that answers. README.md describes the design.
package datapath
