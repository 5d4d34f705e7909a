// SPDX-License-Identifier: Apache-2.0

// Package deploy tests everything that is applied to a cluster, on real API servers: the chart and the manifests
// rendered from it, the rights that they grant, the admission policies, the example Corefiles, and credentials.
package deploy
