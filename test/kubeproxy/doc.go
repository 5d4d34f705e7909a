// SPDX-License-Identifier: Apache-2.0

// Package kubeproxy holds what the controller merges against kube-proxy's own
// code: the endpoints that it chooses on a node for the slices of a merge.
//
// It is a module of its own, so that Kubernetes' requirements never become the product's.
package kubeproxy
