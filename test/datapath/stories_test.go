// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
)

// stories are tested with each mode of kube-proxy. Each uses its own namespaces. A story that breaks a cluster must
// repair it.
var stories = []story{
	{"share the load", shareTheLoad},
	{"move a service", moveService},
	{"ports", ports},
	{"prefer the local cluster", preferCluster},
	{"tiers of clusters", tiers},
	{"weights", weights},
	{"drain", drain},
}

// inOneMode are the stories for which the mode of kube-proxy does not matter: causes of demotion, because drain tests
// its effect in each mode, and traffic without ClusterIPs.
var inOneMode = []story{
	{"pod network is cut", podNetworkCut},
	{"ingress", ingress},
}

type story struct {
	name string
	tell func(*testing.T, *bed)
}

func TestNFTables(t *testing.T) {
	tellAll(t, newBed(t, "nftables", false), slices.Concat(stories, inOneMode))
}

func TestIPTables(t *testing.T) { tellAll(t, newBed(t, "iptables", false), stories) }

func tellAll(t *testing.T, b *bed, stories []story) {
	for _, story := range stories {
		t.Run(story.name, func(t *testing.T) { story.tell(t, b) })
	}
}

// shareTheLoad: one name has the backends of both clusters, in each family, with equal shares, on an unnamed port. A
// Service with the same name that its cluster does not export neither gets nor loses traffic.
func shareTheLoad(t *testing.T, b *bed) {
	unnamed := []corev1.ServicePort{port("", corev1.ProtocolTCP, 80, 8080)}
	s := service{namespace: b.namespace(t), name: "web", ports: unnamed, change: func(s *corev1.Service) {
		s.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyRequireDualStack)
	}}
	backends := slices.Concat(b.east.deploy(t, s, 2), b.west.deploy(t, s, 2))
	local := b.north.pods(t, s, 2)
	b.north.serve(t, s)
	var client *pod
	for _, c := range b.all() {
		client = c.client(t, s.namespace, 0)
		for _, network := range []string{"tcp4", "tcp6"} {
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

// moveService: a service moves from east to north without an effect on its clients.
func moveService(t *testing.T, b *bed) {
	s := service{namespace: b.namespace(t), name: "moved", ports: http80}
	b.east.deploy(t, s, 1)
	client := b.west.client(t, s.namespace, 1)
	watched := client.watch(t, lossless, s.at(80))
	watched.only(t, time.Now(), "east")

	begin := time.Now()
	b.north.deploy(t, s, 1)
	arrived := watched.only(t, begin, "east", "north")
	left := time.Now()
	must(t, b.east.mcs.MulticlusterV1beta1().ServiceExports(s.namespace).Delete(t.Context(), s.name, metav1.DeleteOptions{}))
	gone := watched.only(t, left, "north")
	watched.intact(t, begin, fmt.Sprintf("north answers after %s, east no more after %s", seconds(arrived), seconds(gone)))
}

// preferCluster: all connections stay in the local cluster while it has a ready pod, and otherwise go to other
// clusters. Pods do not just become unready, but die.
func preferCluster(t *testing.T, b *bed) {
	s := service{
		namespace: b.namespace(t), name: "near", ports: http80,
		annotations: map[string]string{"clusterset-dns.github.io/prefer": "cluster"},
	}
	east, west := b.east.deploy(t, s, 2), b.west.deploy(t, s, 2)
	for _, c := range b.all() {
		c.awaitEndpoints(t, s, 4, nil)
	}
	for c, own := range map[*cluster][]*pod{b.east: east, b.west: west, b.north: slices.Concat(east, west)} {
		c.client(t, s.namespace, 0).reaches(t, 1000, "tcp4", s.at(80), own...)
	}

	client := b.west.client(t, s.namespace, 1)
	watched := client.watch(t, lossless, s.at(80))
	watched.only(t, time.Now(), "west")
	// Another local pod is still ready.
	west[0].setReady(t, false)
	client.reaches(t, 200, "tcp4", s.at(80), west[1])
	must(t, west[0].server.Kill())

	died := west[1].setReady(t, false)
	must(t, west[1].server.Kill())
	away := watched.only(t, died, "east")
	for _, p := range west {
		p.serve(t, "tcp:8080")
		p.setReady(t, true)
	}
	back := watched.only(t, time.Now(), "west")
	client.reaches(t, 1000, "tcp4", s.at(80), west...)
	watched.intact(t, died.Add(away), fmt.Sprintf("abroad after %s, home after %s", seconds(away), seconds(back)))
}

// ports: a port of the import has the endpoints of the clusters whose Service has that port (KEP-1645, Service Port).
// The export of east is older or, if both were created in the same second, first by name.
func ports(t *testing.T, b *bed) {
	const tcp, udp = corev1.ProtocolTCP, corev1.ProtocolUDP
	serve := []string{"tcp:8080", "tcp:8081", "udp:8080", "udp:8081"}
	s := service{namespace: b.namespace(t), name: "many", ports: []corev1.ServicePort{
		port("dns", udp, 53, 8080), port("dns-tcp", tcp, 53, 8080), port("http", tcp, 80, 8080), port("web", tcp, 81, 8080),
		port("api", tcp, 82, 8080),
	}}
	east := b.east.deploy(t, s, 1, serve...)
	s.ports = []corev1.ServicePort{
		port("dns", udp, 53, 8080), port("dns-tcp", tcp, 53, 8080), port("http", tcp, 80, 8081), port("www", tcp, 81, 8080),
		port("api", tcp, 8888, 8080), port("metrics", tcp, 9090, 8081), port("stats", udp, 8125, 8081),
	}
	west := b.west.deploy(t, s, 1, serve...)
	both := slices.Concat(east, west)
	client := b.north.client(t, s.namespace, 0)
	for _, test := range []struct {
		why, network string
		number       int
		by           []*pod
	}{
		{"UDP and TCP on one number", "udp4", 53, both},
		{"UDP and TCP on one number", "tcp4", 53, both},
		{"different targets", "tcp4", 80, both},
		{"different names, one number", "tcp4", 81, both},
		{"one name, different numbers: the oldest export's", "tcp4", 82, east},
		{"one name, different numbers: the other one", "tcp4", 8888, nil},
		{"one cluster has it alone", "tcp4", 9090, west},
		{"one cluster has it alone", "udp4", 8125, west},
	} {
		t.Run(fmt.Sprintf("%s, %s", test.why, test.network), func(t *testing.T) {
			if test.by != nil {
				client.reaches(t, 100, test.network, s.at(test.number), test.by...)
				return
			}
			counted, err := client.connect(t.Context(), 5, 2*time.Second, test.network, s.at(test.number))
			must(t, err)
			if len(counted.Who()) > 0 {
				t.Errorf("port %d: %s", test.number, counted)
			}
		})
	}
}

// drain: an administrator drains a healthy cluster.
func drain(t *testing.T, b *bed) {
	namespace := b.namespace(t)
	s := service{namespace: namespace, name: "drained", ports: []corev1.ServicePort{
		port("tcp", corev1.ProtocolTCP, 80, 8080), port("udp", corev1.ProtocolUDP, 80, 8080),
	}}
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
