// SPDX-License-Identifier: Apache-2.0

// Package member reads the other clusters of the set. It turns kubeconfig Secrets and the proposals of Sources into
// credentials, and keeps one connection to each member, with one watch of the EndpointSlices that the member publishes and one
// of its heartbeat.
//
// Each member has a context from joining to leaving. The package stores nothing in another cluster (it requests tokens from
// some), and losing contact with a member removes nothing that was read from it.
package member
