// SPDX-License-Identifier: Apache-2.0

// Package member reads the other clusters of the set: it turns kubeconfig Secrets and flags into credentials, and holds
// for each member one connection with one watch of the EndpointSlices that the member publishes and one watch of its
// heartbeat.
//
// A member's life is a context: joining gives it one, leaving cancels it. The package never writes to another cluster,
// and losing sight of a member removes nothing of what was seen of it.
package member
