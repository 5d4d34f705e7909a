// SPDX-License-Identifier: Apache-2.0

// Command demo shows the product on models of two API servers, which run in the demo's own process: nothing of
// Kubernetes but its client libraries is compiled for it. The story is in package story; command real tells it on real
// control planes.
package main

import "github.com/clusterset-dns/clusterset-dns/test/demo/story"

func main() {
	story.Main(story.Bed{
		Real:  "clusterset-controller, CoreDNS, kubectl-clusterset, each a process; TLS, tokens and RBAC between them",
		Model: "the Kubernetes API, held to kube-apiserver by contract tests, and its controllers; pods run nothing",
		Start: start,
	})
}
