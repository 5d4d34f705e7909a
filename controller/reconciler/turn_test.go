// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/heartbeat"
	"github.com/clusterset-dns/clusterset-dns/controller/metrics"
)

// TestLargeServicesTakeTurns: while a large service is reconciled, others wait without a worker, a small one is
// reconciled, and nothing is stuck. Those that wait follow once the turn ends.
func TestLargeServicesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers = 8
		r := newTestReconciler(record.NewFakeRecorder(9))
		r.Clock = clock.RealClock{}
		var err error
		if r.Metrics, err = metrics.New(prometheus.NewRegistry(), "v"); err != nil {
			t.Fatal(err)
		}
		named := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "demo", Name: name} }
		add := func(name string, size int) {
			if err := r.Local.EndpointSlices.Indexer().Add(&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
				Namespace: "demo", Name: name, Annotations: map[string]string{"a": strings.Repeat("x", size)},
				Labels: map[string]string{export.LabelService: name, export.LabelSliceManagedBy: export.Manager},
			}}); err != nil {
				t.Fatal(err)
			}
			r.queue.Add(named(name))
		}
		expected := map[types.NamespacedName]struct{}{}
		for i := range workers {
			name := fmt.Sprint("large-", i)
			expected[named(name)] = struct{}{}
			add(name, large)
		}
		add("small", 1)
		of := heartbeat.NewRecord(heartbeat.RecordConfig{Clock: r.Clock, After: time.Minute}, expected)

		if !r.turn.take(named("other")) {
			t.Fatal("the turn is not free")
		}
		ctx, stop := context.WithCancel(t.Context())
		running := make(chan struct{})
		go func() {
			defer close(running)
			r.Run(ctx, workers, of)
		}()
		synctest.Wait()
		<-time.After(time.Hour)
		synctest.Wait()
		if stuck := of.Stuck(time.Minute); stuck != "" {
			t.Error(stuck)
		}
		if waiting := r.QueueLength(); waiting != workers {
			t.Errorf("%d services wait, want the %d large ones", waiting, workers)
		}
		select {
		case <-of.Seen():
			t.Error("a large service was reconciled before its turn")
		default:
		}
		r.nextTurn(true)
		synctest.Wait()
		select {
		case <-of.Seen():
		default:
			t.Error("not all large services were reconciled after the turn")
		}
		stop()
		<-running
	})
}
