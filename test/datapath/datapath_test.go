// SPDX-License-Identifier: Apache-2.0

package datapath

import "testing"

// stories are what each mode of kube-proxy is tested with. Each has namespaces of its own; those that break a cluster
// repair it.
var stories = []struct {
	name string
	tell func(*testing.T, *bed)
}{
	{"reach by name", reachByName},
	{"share the load", shareTheLoad},
	{"local Service stays its own", localServiceStays},
	{"move a service", moveService},
	{"ports", ports},
	{"session affinity", sessionAffinity},
	{"dual stack", dualStack},
	{"prefer the local cluster", preferCluster},
	{"prefer the same zone", preferZone},
	{"tiers of clusters", tiers},
	{"border", border},
	{"prefer the local cluster without zones", preferWithoutZones},
	{"weights", weights},
	{"drain", drain},
	{"silent cluster", silentCluster},
	{"pod network is cut", podNetworkCut},
	{"no reason to demote", noReason},
	{"ingress", ingress},
	{"etcd discovery", etcdDiscovery},
	{"connectivity", connectivity},
}

func TestNFTables(t *testing.T) { tellAll(t, newBed(t, "nftables")) }

func TestIPTables(t *testing.T) { tellAll(t, newBed(t, "iptables")) }

func tellAll(t *testing.T, b *bed) {
	for _, story := range stories {
		t.Run(story.name, func(t *testing.T) { story.tell(t, b) })
	}
}
