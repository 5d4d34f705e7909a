// SPDX-License-Identifier: Apache-2.0

// Package deploy holds what is applied to a cluster.
package deploy

import _ "embed"

var (
	// Rights are those of clusterset-controller and of members, as YAML, for the namespace clusterset-dns.
	//
	//go:embed rbac.yaml
	Rights []byte
	// CoreDNSRights are those of CoreDNS with multicluster, as YAML.
	//
	//go:embed coredns-rbac.yaml
	CoreDNSRights []byte
	// Manifest is the chart with its defaults, as YAML, for the namespace clusterset-dns.
	//
	//go:embed manifest.yaml
	Manifest []byte
)
