// SPDX-License-Identifier: Apache-2.0

// Package deploy holds what is applied to a cluster.
package deploy

import _ "embed"

// Rights are those of clusterset-controller and of members, as YAML, for the namespace clusterset-dns.
//
//go:embed rbac.yaml
var Rights []byte
