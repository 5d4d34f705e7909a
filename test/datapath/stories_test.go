// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
)

// stories are tested with each mode of kube-proxy. Each uses its own namespaces. A story that breaks a cluster must
// repair it.
var stories = []story{
	{"share the load", shareTheLoad},
	{"order of clusters", order},
	{"drain", drain},
}

type story struct {
	name string
	tell func(*testing.T, *bed)
}

// The causes of demotion are tested in one mode, because drain tests its effect in each mode.
func TestNFTables(t *testing.T) {
	tellAll(t, newBed(t, "nftables", false), append(stories, story{"pod network is cut", podNetworkCut}))
}

func TestIPTables(t *testing.T) { tellAll(t, newBed(t, "iptables", false), stories) }

func tellAll(t *testing.T, b *bed, stories []story) {
	for _, story := range stories {
		t.Run(story.name, func(t *testing.T) { story.tell(t, b) })
	}
}

// tcpAndUDP are two ports with one number. The pods listen on target.
func tcpAndUDP(target int32) []corev1.ServicePort {
	return []corev1.ServicePort{port("tcp", corev1.ProtocolTCP, 80, target), port("udp", corev1.ProtocolUDP, 80, target)}
}

// shareTheLoad: one name has the backends of both clusters, in each family and protocol, with equal shares, although
// their pods listen on different ports. A Service with the same name that its cluster does not export neither gets nor
// loses traffic.
func shareTheLoad(t *testing.T, b *bed) {
	s := service{namespace: b.namespace(t), name: "web", ports: tcpAndUDP(8080), change: func(s *corev1.Service) {
		s.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyRequireDualStack)
	}}
	backends := b.east.deploy(t, s, 2, "tcp:8080", "udp:8080")
	local := b.north.pods(t, s, 2)
	b.north.serve(t, s)
	s.ports = tcpAndUDP(9090)
	backends = append(backends, b.west.deploy(t, s, 2, "tcp:9090", "udp:9090")...)
	var client *pod
	for _, c := range b.all() {
		client = c.client(t, s.namespace, 0)
		for _, network := range []string{"tcp4", "tcp6", "udp4"} {
			counted := client.reaches(t, 1000, network, s.at(80), backends...)
			// For 1,000 even choices among four, six standard deviations are 82.
			answers := counted.Answers()
			for _, backend := range backends {
				if share := answers[backend.identity()]; share < 250-82 || share > 250+82 {
					t.Errorf("from %s the load over %s is uneven: %v", c.Name(), network, answers)
				}
			}
		}
	}
	for _, name := range []string{"web", "web." + s.namespace, "web." + s.namespace + ".svc.cluster.local"} {
		client.reaches(t, 200, "tcp4", name+":80", local...)
	}
}

// order: clients use the pods of their own cluster, which takes hints, and clients of north those of east, the next
// tier. If these are not ready, kube-proxy uses others immediately: without hints, or the endpoints of a later tier.
func order(t *testing.T, b *bed) {
	s := service{
		namespace: b.namespace(t), name: "ordered", ports: http80,
		annotations: "clusterset-dns.github.io/prefer: local > east",
	}
	east, west := b.east.deploy(t, s, 2), b.west.deploy(t, s, 2)
	for c, first := range map[*cluster][]*pod{b.east: east, b.west: west, b.north: east} {
		c.client(t, s.namespace, 0).reaches(t, 1000, "tcp4", s.at(80), first...)
	}
	client := b.west.client(t, s.namespace, 1) // on the other node, in another zone
	west[0].setReady(t, false)
	client.reaches(t, 200, "tcp4", s.at(80), west[1])
	west[0].setReady(t, true)
	for _, step := range []struct {
		fail     []*pod
		from, to *cluster
	}{{west, b.west, b.east}, {east, b.north, b.west}} {
		first := step.fail[0].cluster.Name()
		watched := step.from.client(t, s.namespace, len(step.from.nodes)-1).watch(t, lossless, s.at(80))
		watched.only(t, time.Now(), first)
		var failed time.Time
		for _, p := range step.fail {
			failed = p.setReady(t, false)
		}
		away := watched.only(t, failed, step.to.Name())
		for _, p := range step.fail {
			p.setReady(t, true)
		}
		back := watched.only(t, time.Now(), first)
		watched.intact(t, failed, fmt.Sprintf("away from %s after %s, back after %s", first, seconds(away), seconds(back)))
	}
}

// drain: an administrator drains a healthy cluster.
func drain(t *testing.T, b *bed) {
	namespace := b.namespace(t)
	s := service{namespace: namespace, name: "drained", ports: tcpAndUDP(8080)}
	b.east.deploy(t, s, 1, "tcp:8080", "udp:8080")
	west := b.west.deploy(t, s, 1, "tcp:8080", "udp:8080")
	client := b.west.client(t, namespace, 0)
	watched := client.watch(t, lossless, s.at(80))
	watched.only(t, time.Now(), "east", "west")
	open := client.keepWith(t, b.east, "tcp4", s.at(80))
	flow := client.keepWith(t, b.east, "udp4", s.at(80))

	b.west.drain(t, b.east, true)
	drained := time.Now()
	away := watched.only(t, drained, "west")
	client.reaches(t, 200, "tcp4", s.at(80), west...)
	client.reaches(t, 200, "udp4", s.at(80), west...)
	// Open connections stay with their cluster, and so do flows of sockets that keep sending.
	open.stays(t, b.east, "east is drained")
	flow.stays(t, b.east, "east is drained, over UDP")

	b.west.drain(t, b.east, false)
	restored := time.Now()
	back := watched.only(t, restored, "east", "west")
	watched.intact(t, drained, fmt.Sprintf("east is drained: away after %s, back after %s", seconds(away), seconds(back)))
}

// drain drains a member in a cluster, or undoes it.
func (c *cluster) drain(t testing.TB, of *cluster, drained bool) {
	c.patch(t, "secrets.v1.", system, clusterset.SecretOf(of.Name()),
		fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, memberstate.AnnotationDrain, strconv.FormatBool(drained)))
}
