// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"slices"
	"testing"
)

// stories are what each mode of kube-proxy is tested with. Each has namespaces of its own; those that break a cluster
// repair it.
var stories = []story{
	{"share the load", shareTheLoad},
	{"local Service stays its own", localServiceStays},
	{"move a service", moveService},
	{"ports", ports},
	{"dual stack", dualStack},
	{"prefer the local cluster", preferCluster},
	{"tiers of clusters", tiers},
	{"weights", weights},
	{"drain", drain},
}

// inOneMode are those to which the mode of kube-proxy makes no difference: what demotes a cluster, which drain tests in
// each mode, and what does not go by ClusterIPs.
var inOneMode = []story{
	{"pod network is cut", podNetworkCut},
	{"ingress", ingress},
}

type story struct {
	name string
	tell func(*testing.T, *bed)
}

func TestNFTables(t *testing.T) { tellAll(t, newBed(t, "nftables"), slices.Concat(stories, inOneMode)) }

func TestIPTables(t *testing.T) { tellAll(t, newBed(t, "iptables"), stories) }

func tellAll(t *testing.T, b *bed, stories []story) {
	for _, story := range stories {
		t.Run(story.name, func(t *testing.T) { story.tell(t, b) })
	}
}
