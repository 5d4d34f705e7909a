// SPDX-License-Identifier: Apache-2.0

// Package kubeproxy tests results of the controller's merge with kube-proxy's own code: the endpoints that kube-proxy
// chooses on a node from the merged slices.
//
// It is a separate module, so that Kubernetes' requirements never become requirements of the product.
package kubeproxy
