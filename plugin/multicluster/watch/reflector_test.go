// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// kubernetes#135583: API servers without the feature gate WatchList refuse a watch that asks for initial events: they
// are healthy.
func TestAnAPIServerWithoutWatchListIsHealthy(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
	for name, test := range map[string]struct {
		refuses func(metav1.ListOptions) bool
		fails   float64
	}{
		"without WatchList": {func(o metav1.ListOptions) bool { return o.SendInitialEvents != nil }, 0},
		"that watches not":  {func(metav1.ListOptions) bool { return true }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				watchErrors.Reset()
				b := newBench(t, Options{})
				b.follow(t, time.Millisecond, func(options metav1.ListOptions) (apiwatch.Interface, error) {
					if test.refuses(options) {
						return nil, invalid
					}
					return apiwatch.NewFake(), nil
				})
				failed := testutil.ToFloat64(watchErrors.WithLabelValues("serviceimports", "Invalid"))
				if reasons := testutil.CollectAndCount(watchErrors); failed != test.fails || reasons != 1 {
					t.Errorf("%v failures, of %d reasons, want %v", failed, reasons, test.fails)
				}
				if b.imports.healthy != (test.fails == 0) {
					t.Errorf("healthy is %v", b.imports.healthy)
				}
			})
		})
	}
}

// follow runs a reflector of imports, of which there are none, for this long. It returns the number of lists.
func (b *bench) follow(t *testing.T, during time.Duration, watch func(metav1.ListOptions) (apiwatch.Interface, error)) (lists int) {
	r := b.imports.reflector(new(unstructured.Unstructured), &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			lists++
			return &unstructured.UnstructuredList{Object: map[string]any{"metadata": map[string]any{"resourceVersion": "7"}}}, nil
		},
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			return watch(options)
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { r.RunWithContext(ctx) })
	<-time.After(during)
	cancel()
	running.Wait()
	return lists
}

// TestListsAndWatches: after a watch timed out, the next watch resumes. After a watch that ended long before or after
// its timeout, the reflector lists, because etcd may have been restored from a backup meanwhile. After a broken stream
// of initial events, one list suffices.
func TestListsAndWatches(t *testing.T) {
	for name, test := range map[string]struct {
		streams        bool          // the server streams initial events, and breaks off
		ends           time.Duration // end of the first watch, relative to its timeout
		refused        int           // how often the next watch is refused
		lists, watches int
	}{
		"it breaks":                  {false, -time.Minute, 0, 2, 2},
		"it ends":                    {false, 0, 0, 1, 2},
		"the next one is refused":    {false, 0, 20, 1, 22},
		"it was lost":                {false, 45 * time.Second, 0, 2, 2},
		"initial events, and no end": {true, time.Hour, 0, 1, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			watches := 0
			lists := newBench(t, Options{}).follow(t, time.Hour, func(options metav1.ListOptions) (apiwatch.Interface, error) {
				w := apiwatch.NewFake()
				switch {
				case options.SendInitialEvents == nil:
					if watches++; watches > 1 && watches <= 1+test.refused {
						return nil, apierrors.NewTooManyRequests("later", 1)
					} else if watches == 1 {
						time.AfterFunc(time.Duration(*options.TimeoutSeconds)*time.Second+test.ends, w.Stop)
					}
				case test.streams:
					w.Stop()
				default:
					return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
				}
				return w, nil
			})
			if lists != test.lists || watches != test.watches {
				t.Errorf("%s: there were %d lists and %d watches, want %d and %d", name, lists, watches, test.lists, test.watches)
			}
		})
	}
}

// TestWhatIsWaitedFor: for a missing group, an API server answers "forbidden" to an account without rights on it. A
// source settles when it is synced, or when the API server refuses, because that may never change.
func TestWhatIsWaitedFor(t *testing.T) {
	of := schema.GroupResource{Resource: "endpointslices"}
	for name, test := range map[string]struct {
		optional        bool
		err             error
		settled, synced bool
	}{
		"it is listed later":          {false, nil, false, false},
		"it is missing":               {false, apierrors.NewNotFound(of, ""), true, false},
		"it is forbidden":             {false, apierrors.NewForbidden(of, "", errors.New("no right")), true, false},
		"the API server is away":      {false, errors.New("connection refused"), false, false},
		"optional and missing":        {true, apierrors.NewNotFound(of, ""), true, true},
		"optional and forbidden":      {true, apierrors.NewForbidden(of, "", errors.New("no right")), true, true},
		"optional and not authorized": {true, apierrors.NewUnauthorized("no token"), true, false},
		"optional and throttled":      {true, apierrors.NewTooManyRequests("later", 1), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, Options{})
			settle := b.settle
			b.settle = func() {
				if closed(b.Synced()) {
					t.Error("it is synced before it is settled: readiness is withdrawn in between")
				}
				settle()
			}
			expect := func(when string, settled, synced bool) {
				t.Helper()
				b.drain()
				missing := []Resource{EndpointSlices}
				if synced {
					missing = nil
				}
				if got := b.Missing(); closed(b.Settled()) != settled || closed(b.Synced()) != synced || !slices.Equal(got, missing) {
					t.Errorf("%s: settled %v, synced %v, missing %v", when, closed(b.Settled()), closed(b.Synced()), got)
				}
			}
			b.imports.note(false)
			expect("before", false, false)
			b.slices.optional = test.optional
			b.slices.asked(test.err)
			expect("asked", test.settled, test.synced)
			b.slices.note(false)
			expect("listed", true, true)
		})
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
