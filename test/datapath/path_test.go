// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/controller/probe"
)

// probePort is the port on which the controller's pods answer probes.
const probePort = 8081

// offerTargets creates the Service of the probe targets, as the chart does.
func (c *cluster) offerTargets(t testing.TB) {
	const text = "{apiVersion: v1, kind: Service, metadata: {name: %s, namespace: clusterset-dns}, spec: {%s" +
		"selector: {app: clusterset-controller}, ports: [{name: %s, port: %d}]}}\n---\n"
	objects := fmt.Sprintf(text, probe.Service, "clusterIP: None, ", probe.Port, probePort)
	if c.bed.networks {
		objects += fmt.Sprintf(text, probe.ExposedService, "type: NodePort, externalTrafficPolicy: Local, ", probe.Port, probePort)
	}
	c.apply(t, objects)
}

// awaitPath waits until the controller reports this state of the path to a member's pods.
func (c *cluster) awaitPath(t testing.TB, of *cluster, want string) {
	eventually(t, fmt.Sprintf("the path from %s to %s", c.Name(), of.Name()), func(ctx context.Context) error {
		lease, err := c.CoordinationV1().Leases(system).Get(ctx, memberstate.LeasePrefix+of.Name(), metav1.GetOptions{})
		if err == nil && lease.Annotations[memberstate.PathAnnotation] != want {
			err = fmt.Errorf("it is %q, want %q", lease.Annotations[memberstate.PathAnnotation], want)
		}
		return err
	})
}

// way has the ranges of the sources and destinations of packets, with the families in the same order.
type way struct{ from, to []netip.Prefix }

// ways returns the ways between two sets of ranges, in both directions.
func ways(one, other []netip.Prefix) []way { return []way{{one, other}, {other, one}} }

// drop makes the router drop the packets of some ways; packets to API servers still pass. It returns a function that
// undoes this, at the latest when the test ends, and the time when it was done.
func (b *bed) drop(t testing.TB, cut []way) (undo func(), at time.Time) {
	var rules strings.Builder
	rules.WriteString("table inet cut {\nchain forward {\ntype filter hook forward priority 0; policy accept;\n")
	for _, each := range cut {
		for i, from := range each.from {
			family := map[bool]string{true: "ip", false: "ip6"}[from.Addr().Is4()]
			fmt.Fprintf(&rules, "%s saddr %s %s daddr %s drop\n", family, from, family, each.to[i])
		}
	}
	rules.WriteString("}\n}\n")
	must(t, router.Filter(rules.String()))
	var once sync.Once // not OnceFunc, which panics if nft ends the test
	undo = func() { once.Do(func() { must(t, router.Filter("delete table inet cut\n")) }) }
	t.Cleanup(undo)
	return undo, time.Now()
}

// podNetworkCut: the pods of two clusters do not reach each other, but both reach all API servers. The failover time is
// only logged: TestPathIsCut of test/sim limits the demotion to 3.7 s, also if only one direction is cut, and kube-proxy
// adds at most a second.
func podNetworkCut(t *testing.T, b *bed) {
	namespace := b.namespace(t)
	s := service{namespace: namespace, name: "cut", ports: http80}
	b.east.deploy(t, s, 1)
	b.west.deploy(t, s, 1)
	for _, other := range []*cluster{b.east, b.north} {
		b.west.awaitPath(t, other, "reachable")
	}
	watched := b.west.client(t, namespace, 0).watch(t, 300*time.Millisecond, s.at(80))
	watched.only(t, time.Now(), "east", "west")
	undo, cut := b.drop(t, ways(b.west.reached, b.east.reached))
	away := watched.only(t, cut, "west")
	lost := watched.since(t, cut)
	b.west.awaitPath(t, b.east, "unreachable")
	b.west.awaitPath(t, b.north, "reachable")
	b.north.awaitPath(t, b.east, "reachable")
	undo()
	repaired := time.Now()
	// Before that, a reused source port may lead a connection to east.
	b.west.awaitPath(t, b.east, "reachable")
	back := time.Since(repaired)
	watched.only(t, time.Now(), "east", "west")
	t.Logf("away after %s, back after %s; %s", seconds(away), seconds(back), lost)
}
