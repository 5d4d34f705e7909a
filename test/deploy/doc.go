// SPDX-License-Identifier: Apache-2.0

// Package deploy tests what is applied to a cluster on real API servers: the chart and the manifests rendered from it,
// the rights that they give, the policies, the examples of Corefiles, what watches over all of it, and the ways to API
// servers that are private.
package deploy
