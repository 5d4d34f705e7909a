// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/link"
)

// TestDrain: a person takes the traffic away from a healthy cluster, and gives
// it back.
func TestDrain(t *testing.T) {
	b := newBed(t)
	b.fault("a member is drained", func(b *bed) {
		b.annotate(b.west, controller.AnnotationDrain, "true")
		b.everywhere(healthy, map[*cluster]view{b.east: westDemoted})
		b.judged(pair{b.east, b.west}, "Heard")
		// It is drained, and not silent: what it says counts.
		b.endpoints(b.west, "lone", "10.65.0.9")
		const lone = "west/10.65.0.9 -> 10.65.0.9"
		b.everywhere(healthy.with("lone", lone), map[*cluster]view{b.east: westDemoted.with("lone", lone)})
		// Another value is no drain.
		b.annotate(b.west, controller.AnnotationDrain, "false")
		b.expect(healthy.with("lone", lone))
		b.annotate(b.west, controller.AnnotationDrain, "")
		b.expect(healthy.with("lone", lone))
		b.calm()
	})
	b.fault("all members are drained", func(b *bed) {
		// Where there is nowhere else to go, nothing is taken away.
		b.annotate(b.west, controller.AnnotationDrain, "true")
		b.everywhere(healthy, map[*cluster]view{b.east: westDemoted})
		b.annotate(b.north, controller.AnnotationDrain, "true")
		b.expect(healthy)
		b.annotate(b.north, controller.AnnotationDrain, "")
		b.everywhere(healthy, map[*cluster]view{b.east: westDemoted})
		b.annotate(b.west, controller.AnnotationDrain, "")
		b.expect(healthy)
	})
	b.fault("a cluster is drained at home", testDrainOfTheOwnCluster)
	b.fault("a drained member falls silent", func(b *bed) {
		p := pair{b.east, b.west}
		b.annotate(b.west, controller.AnnotationDrain, "true")
		b.everywhere(healthy, map[*cluster]view{b.east: westDemoted})
		b.ways[p].CutOff(link.Both)
		b.falls(36*time.Second, b.pairs(p)...)
		b.judged(p, "Silent")
		b.everywhere(healthy, map[*cluster]view{b.east: westDemoted})
		b.annotate(b.west, controller.AnnotationDrain, "")
		b.everywhere(healthy, map[*cluster]view{b.east: westDemoted})
		b.ways[p].Reconnect()
		b.beat(b.pairs()...)
		b.expect(healthy)
		b.calm()
	})
}

// testDrainOfTheOwnCluster: its own clients leave it, and the others', who
// judge for themselves, do not.
func testDrainOfTheOwnCluster(b *bed) {
	drain := func(value string) {
		b.Helper()
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, controller.AnnotationDrain, value)
		// Cleanup needs it, too.
		_, err := b.west.CoreV1().Namespaces().Patch(context.Background(), system, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		b.must(err)
	}
	b.Cleanup(func() { drain("false") })
	drain("true")
	b.everywhere(healthy, map[*cluster]view{b.west: westDemoted})
	drain("false")
	b.expect(healthy)
	b.calm()
}
