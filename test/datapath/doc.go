// SPDX-License-Identifier: Apache-2.0

// Package datapath tests the two programs with packets: real connections through real kube-proxies, counted by the
// answering pods. README.md describes the design.
package datapath
