// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterset-dns/clusterset-dns/controller/apply"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/heartbeat"
)

// TestLargeExportsComeFirst: the first heartbeat of a leader waits for no imports, even if several exports are large. Large
// services are reconciled one at a time.
func TestLargeExportsComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestReconciler()
		var running atomic.Int32
		r.Observe = func(time.Duration, error) { // each pass takes 1 ms
			if running.Add(1) > atOnce+1 {
				t.Error("two large services are reconciled at once")
			}
			<-time.After(time.Millisecond)
			running.Add(-1)
		}
		exports := map[types.NamespacedName]struct{}{}
		for _, name := range []string{"large-1", "large-2"} {
			service := types.NamespacedName{Namespace: "demo", Name: name}
			must(t, r.Local.EndpointSlices.Indexer().Add(export.Pack(&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
				Namespace: "demo", Name: name, Annotations: map[string]string{"x": strings.Repeat("x", large)},
				Labels: map[string]string{export.LabelService: name, export.LabelSourceCluster: "east", export.LabelSliceManagedBy: export.Manager},
			}})))
			exports[service] = struct{}{}
			r.queue.Add(service)
		}
		for i := range 20_000 {
			r.queue.Add(types.NamespacedName{Namespace: "demo", Name: fmt.Sprint("imported-", i)})
		}
		r.heartbeat = heartbeat.New(heartbeat.Config{Clock: r.Clock}, exports)
		var group sync.WaitGroup
		begin := time.Now()
		for range 12 {
			group.Go(func() { r.work(t.Context()) })
		}
		<-r.heartbeat.Seen()
		if took := time.Since(begin); took > 200*time.Millisecond {
			t.Errorf("the first heartbeat waits for %s, until %d of 20000 imports are left", took, r.queue.Len())
		}
		r.ShutDown()
		group.Wait()
		<-time.After(time.Minute)
	})
}

// A slow is an API server with a webhook for the namespaces slow-0 and slow-1 that does not answer within 10 s. In other namespaces, only the
// first write of each slice fails, at once, but of web-0 after a while.
type slow struct {
	asked   sync.Map // by the name of a slice of another namespace, true if it is written
	healed  atomic.Bool
	healthy atomic.Int32 // writes of the namespace since
}

// RoundTrip implements http.RoundTripper.
func (s *slow) RoundTrip(request *http.Request) (*http.Response, error) {
	const failure = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"message":"a webhook failed"}`
	code, text, slice := http.StatusOK, `{"kind":"Status","apiVersion":"v1","status":"Success"}`, path.Base(request.URL.Path)
	if namespace := strings.Contains(request.URL.Path, "/namespaces/slow-"); namespace && s.healed.Load() {
		<-time.After(15 * time.Millisecond)
		s.healthy.Add(1)
	} else if namespace {
		<-time.After(10 * time.Second)
		code, text = http.StatusInternalServerError, failure
	} else if _, again := s.asked.Swap(slice, false); again {
		s.asked.Store(slice, true)
	} else {
		if slice == "web-0" {
			<-time.After(1500 * time.Millisecond)
		}
		code, text = http.StatusInternalServerError, failure
	}
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)), Request: request,
	}, nil
}

// TestFailedServicesDelayNoOthers: writes of 200 services hang in a webhook and fail. Changes of other services do not wait, even
// if a write fails at first, even slowly. Once the webhook answers, and no older write hangs, all services are written.
func TestFailedServicesDelayNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const failing = 200
		r, server := withAPI(t), &slow{}
		r.Applier.Core = kubernetes.NewForConfigOrDie(&rest.Config{Host: "http://local", Transport: server, QPS: -1})
		add := func(namespace, name string) {
			addSlice(t, r, "west", namespace, name) // the copy of a cluster that left: a pass deletes it
			r.queue.Add(types.NamespacedName{Namespace: namespace, Name: name})
		}
		for _, name := range []string{"slow-0", "slow-1", "demo"} {
			must(t, r.Local.Namespaces.Indexer().Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
		}
		for i := range failing {
			add(fmt.Sprint("slow-", i%2), fmt.Sprint("service-", i))
		}
		r.heartbeat = heartbeat.New(heartbeat.Config{Clock: r.Clock}, nil)
		ctx, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		for range 12 {
			group.Go(func() { r.work(ctx) })
		}
		<-time.After(time.Second) // writes hang
		for i := range 5 {
			name := fmt.Sprint("web-", i)
			add("demo", name)
			<-time.After(time.Second)
			if written, _ := server.asked.Load(name); written != true && i > 0 {
				t.Error("a change of another service waits for more than a second")
			}
			<-time.After(7 * time.Second)
		}
		if written, _ := server.asked.Load("web-0"); written != true {
			t.Error("a write of another namespace that failed slowly is not tried again")
		}
		server.healed.Store(true)
		if <-time.After(12 * time.Second); server.healthy.Load() < failing {
			t.Errorf("%d of %d services are written after 12 s", server.healthy.Load(), failing)
		}
		stop()
		r.ShutDown()
		group.Wait()
		<-time.After(time.Minute)
	})
}

// TestALateWatch: while the caches do not show what another writer changed, passes are rare, and are no failures.
func TestALateWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, web, client := withAPI(t), types.NamespacedName{Namespace: "demo", Name: "web"}, fake.NewClientset()
		defer r.ShutDown()
		client.PrependReactor("*", "endpointslices", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if action.GetVerb() == "get" {
				return true, &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{UID: "web", ResourceVersion: "2"}}, nil
			}
			return true, nil, apierrors.NewConflict(action.GetResource().GroupResource(), "web", nil)
		})
		r.Applier.Core, r.heartbeat = client, heartbeat.New(heartbeat.Config{Clock: r.Clock}, nil)
		r.Observe = func(_ time.Duration, err error) { must(t, err) }
		must(t, r.Local.Namespaces.Indexer().Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}))
		addSlice(t, r, "west", "demo", "web") // the copy of a cluster that left: a pass deletes it
		for range 2 * apply.FailuresToReport {
			r.pass(t.Context(), web)
			if pass(retryStale / 2); r.queue.Len() > 0 {
				t.Fatal("the next pass is early")
			}
			if pass(retryStale); queued(r) != "demo/web" {
				t.Fatal("there is no next pass")
			}
		}
	})
}
