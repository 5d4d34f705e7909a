// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// shareTheLoad: the backends of both clusters answer to one name, each as often as the other.
func shareTheLoad(t *testing.T, b *bed) {
	s := service{namespace: b.namespace(t), name: "web", ports: http80}
	backends := slices.Concat(b.east.deploy(t, s, 2), b.west.deploy(t, s, 2))
	for _, c := range b.all() {
		counted := c.client(t, s.namespace, 0).reaches(t, 1000, "tcp4", s.at(80), backends...)
		// Six standard deviations of 1,000 even choices among four are 82.
		for _, backend := range backends {
			if share := counted.Answers[backend.identity()]; share < 250-82 || share > 250+82 {
				t.Errorf("from %s the load is uneven: %v", c.Name(), counted.Answers)
			}
		}
	}
}

// localServiceStays: a Service that its cluster does not export is neither shared nor disturbed by an import of its
// name.
func localServiceStays(t *testing.T, b *bed) {
	s := service{namespace: b.namespace(t), name: "web", ports: http80}
	exported := b.east.deploy(t, s, 2)
	local := b.west.pods(t, s, 2)
	b.west.serve(t, s)
	client := b.west.client(t, s.namespace, 0)
	client.reaches(t, 200, "tcp4", s.at(80), exported...)
	for _, name := range []string{"web", "web." + s.namespace, "web." + s.namespace + ".svc.cluster.local"} {
		client.reaches(t, 200, "tcp4", name+":80", local...)
	}
}

// moveService: a service leaves east for north, and its client neither notices nor does anything.
func moveService(t *testing.T, b *bed) {
	s := service{namespace: b.namespace(t), name: "moved", ports: http80}
	b.east.deploy(t, s, 1)
	client := b.west.client(t, s.namespace, 1)
	watched := client.watch(t, "tcp4", s.at(80))
	watched.only(t, time.Now(), "east")

	begin := time.Now()
	b.north.deploy(t, s, 1)
	arrived := watched.only(t, begin, "east", "north")
	left := time.Now()
	b.east.unexport(t, s)
	gone := watched.only(t, left, "north")
	watched.intact(t, begin, fmt.Sprintf("north answers after %s, east no more after %s", seconds(arrived), seconds(gone)))
}

// dualStack: both families reach the same pods, whose port has no name.
func dualStack(t *testing.T, b *bed) {
	unnamed := []corev1.ServicePort{port("", corev1.ProtocolTCP, 80, 8080)}
	s := service{namespace: b.namespace(t), name: "dual", ports: unnamed, change: func(s *corev1.Service) {
		policy := corev1.IPFamilyPolicyRequireDualStack
		s.Spec.IPFamilyPolicy = &policy
	}}
	backends := slices.Concat(b.east.deploy(t, s, 1), b.north.deploy(t, s, 1))
	client := b.west.client(t, s.namespace, 0)
	for _, network := range []string{"tcp4", "tcp6"} {
		client.reaches(t, 200, network, s.at(80), backends...)
	}
}
