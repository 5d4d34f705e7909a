// SPDX-License-Identifier: Apache-2.0

// Command demo shows the product on models of two API servers, which run in the demo's own process: nothing of
// Kubernetes but its client libraries is compiled for it. The story is in package story; command real tells it on real
// control planes.
package main

import "github.com/clusterset-dns/clusterset-dns/test/demo/story"

func main() {
	story.Main(story.Bed{
		Real: "clusterset-controller, CoreDNS and kubectl-clusterset, as processes; TLS, tokens and RBAC between them",
		Model: "the Kubernetes API (test/sim/apiserver, which contract tests hold to kube-apiserver), and what makes pods " +
			"and EndpointSlices: pods run nothing. `make demo REAL=1` has kube-apiserver and etcd in its place",
		Start: start,
	})
}
