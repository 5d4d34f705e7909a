// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// kubernetes#135583: API servers without the feature gate WatchList refuse a watch that asks for the initial events.
// One that closes the connection instead, as a load balancer without a backend does, is not.
func TestAnAPIServerWithoutWatchListIsHealthy(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
	for name, test := range map[string]struct {
		refuses func(metav1.ListOptions) bool
		fails   []string
		closes  bool // connections, before an answer
	}{
		"without WatchList": {func(o metav1.ListOptions) bool { return o.SendInitialEvents != nil }, nil, false},
		"that watches not": {
			func(metav1.ListOptions) bool { return true },
			[]string{"serviceimports: " + invalid.Error()},
			false,
		},
		"that has everything": {func(metav1.ListOptions) bool { return false }, nil, false},
		"that hangs up": {
			func(metav1.ListOptions) bool { return false },
			slices.Repeat([]string{"serviceimports: " + errClosed.Error()}, 2), true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, Options{})
				r := b.reflector(scope{resource: ServiceImports}, false, new(unstructured.Unstructured), &cache.ListWatch{
					ListWithContextFunc: noImports,
					WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
						if test.refuses(options) {
							return nil, invalid
						}
						if test.closes {
							return apiwatch.NewEmptyWatch(), nil // as client-go does
						}
						return apiwatch.NewFake(), nil
					},
				})
				ctx, cancel := context.WithCancel(t.Context())
				b.running.Go(func() { r.RunWithContext(ctx) })
				synctest.Wait()
				cancel()
				b.running.Wait()
				if !slices.Equal(b.failures, test.fails) {
					t.Errorf("the failures are %q, want %q", b.failures, test.fails)
				}
				if healthy := b.healthy[ServiceImports]; healthy != (len(test.fails) == 0) {
					t.Errorf("healthy is %v", healthy)
				}
			})
		})
	}
}

// TestAListIsFollowedByAWatch: a reflector whose stream of initial events breaks off lists, and then the list is new.
func TestAListIsFollowedByAWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		watches := 0
		r := b.reflector(scope{resource: ServiceImports}, false, new(unstructured.Unstructured), &cache.ListWatch{
			ListWithContextFunc: noImports,
			WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
				w := apiwatch.NewFake()
				if options.SendInitialEvents != nil {
					w.Stop()
				} else {
					watches++
				}
				return w, nil
			},
		})
		ctx, cancel := context.WithCancel(t.Context())
		b.running.Go(func() { r.RunWithContext(ctx) })
		<-time.After(time.Minute)
		cancel()
		b.running.Wait()
		if watches != 1 {
			t.Errorf("%d watches were opened", watches)
		}
	})
}

// TestALostWatchIsFollowedByAList: a watch that ends by itself is opened again. What ended one before or long after that
// is unknown, and etcd may have been restored from a backup meanwhile.
func TestALostWatchIsFollowedByAList(t *testing.T) {
	for after, want := range map[time.Duration]int{-time.Minute: 2, 0: 1, 45 * time.Second: 2} { // after its timeout
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Options{})
			lists, watches := 0, 0
			r := b.reflector(scope{resource: ServiceImports}, false, new(unstructured.Unstructured), &cache.ListWatch{
				ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
					lists++
					return noImports(ctx, options)
				},
				WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
					if options.SendInitialEvents != nil {
						return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
					}
					w := apiwatch.NewFake()
					if watches++; watches == 1 {
						time.AfterFunc(time.Duration(*options.TimeoutSeconds)*time.Second+after, w.Stop)
					}
					return w, nil
				},
			})
			ctx, cancel := context.WithCancel(t.Context())
			b.running.Go(func() { r.RunWithContext(ctx) })
			<-time.After(time.Hour)
			cancel()
			b.running.Wait()
			if lists != want || watches != 2 {
				t.Errorf("after a watch that ended %v after its timeout there were %d lists and %d watches", after, lists, watches)
			}
		})
	}
}

// noImports is an empty list.
func noImports(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return &unstructured.UnstructuredList{Object: map[string]any{"metadata": map[string]any{"resourceVersion": "7"}}}, nil
}

// TestWhatIsWaitedFor: an API server says "forbidden" of a group that it does not have, too, to an account without rights on
// it. What is settled is synced, or refused: that can last.
func TestWhatIsWaitedFor(t *testing.T) {
	of := schema.GroupResource{Resource: "endpointslices"}
	for name, test := range map[string]struct {
		optional        bool
		err             error
		settled, synced bool
	}{
		"it is listed later":                   {false, nil, false, false},
		"it is missing":                        {false, apierrors.NewNotFound(of, ""), true, false},
		"it is forbidden":                      {false, apierrors.NewForbidden(of, "", errors.New("no right")), true, false},
		"the API server is away":               {false, errors.New("connection refused"), false, false},
		"optional and missing":                 {true, apierrors.NewNotFound(of, ""), true, true},
		"optional and forbidden":               {true, apierrors.NewForbidden(of, "", errors.New("no right")), true, true},
		"optional and not authorized":          {true, apierrors.NewUnauthorized("no token"), true, false},
		"optional, and the API server is away": {true, errors.New("connection refused"), false, false},
		"optional and throttled":               {true, apierrors.NewTooManyRequests("later", 1), false, false},
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
			b.note(b.imports.scope, false)
			expect("before", false, false)
			b.asked(b.slices.scope, test.optional, test.err)
			expect("asked", test.settled, test.synced)
			b.note(b.slices.scope, false)
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
