// SPDX-License-Identifier: Apache-2.0

package main

// A program has an image.
type program struct {
	name        string // of the image
	folder      string // of its package in cmd, and of its file in the image
	tags        string // of its build
	description string
	// capabilities are the file capabilities of the program.
	capabilities []byte
	ports        []string
}

// netBindService is cap_net_bind_service=+ep as in linux/capability.h: struct vfs_cap_data of revision 2, effective,
// with bit 10 permitted. As in CoreDNS's own image, it lets CoreDNS listen on port 53 without root if the pod adds the
// capability NET_BIND_SERVICE.
var netBindService = []byte{
	0x01, 0x00, 0x00, 0x02,
	0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
}

var programs = []program{
	{
		name: "clusterset-controller", folder: "clusterset-controller", ports: []string{"8080/tcp", "8081/tcp"},
		description: "Joins the services of one Kubernetes cluster with those of the other clusters of its set",
	},
	{
		name: "coredns", folder: "coredns", ports: []string{"53/tcp", "53/udp"}, capabilities: netBindService,
		description: "CoreDNS with every stock plugin and multicluster",
	},
	{
		name: "coredns-slim", folder: "coredns", ports: []string{"53/tcp", "53/udp"}, capabilities: netBindService,
		description: "CoreDNS with multicluster and what a zone of its own needs", tags: "slim",
	},
}
