// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	cachetesting "k8s.io/client-go/tools/cache/testing"
)

// A server has the objects of one resource, and fails on demand.
type server struct {
	*cachetesting.FakeControllerSource
	mu      sync.Mutex
	failure error
	watch   watch.Interface
	asked   []string
}

// newServer returns a server that no informer may use when the test ends.
func newServer(t *testing.T) *server {
	s := &server{FakeControllerSource: cachetesting.NewFakeControllerSource()}
	t.Cleanup(s.Shutdown)
	return s
}

func (s *server) List(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil {
		return nil, s.failure
	}
	s.asked = append(s.asked, "list"+options.ResourceVersion)
	return s.FakeControllerSource.List(options)
}

func (s *server) Watch(_ context.Context, options metav1.ListOptions) (w watch.Interface, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case options.SendInitialEvents != nil:
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil)
	case s.failure != nil:
		return nil, s.failure
	}
	s.asked = append(s.asked, "watch")
	s.watch, err = s.FakeControllerSource.Watch(options)
	return s.watch, err
}

// put adds and deletes objects until exactly the names exist.
func (s *server) put(names ...string) {
	for _, object := range s.Items {
		if at := slices.Index(names, object.(*corev1.ConfigMap).Name); at >= 0 {
			names = slices.Delete(slices.Clone(names), at, at+1)
		} else {
			s.Delete(object.DeepCopyObject())
		}
	}
	for _, name := range names {
		s.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
}

// fail makes all requests fail from now on, and ends the watch.
func (s *server) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
	if err != nil {
		s.watch.Stop()
	}
}

// A pair is two informers with one gate, and a goroutine that acts on both caches after a change.
type pair struct {
	group            FreshnessGate
	services, slices *server
	informers        []*Informer
	endSlices        context.CancelFunc
	changed          chan struct{}

	mu       sync.Mutex
	acted    string
	handlers int // calls of handlers
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{services: newServer(t), slices: newServer(t), changed: make(chan struct{}, 1)}
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	ctx := t.Context() // which ends before Cleanup
	slicesCtx, end := context.WithCancel(ctx)
	p.endSlices = end
	contexts := map[*server]context.Context{p.services: ctx, p.slices: slicesCtx}
	for _, each := range []*server{p.services, p.slices} {
		each.put("old")
		i := New[*corev1.ConfigMap](&p.group, each, Options{Resource: "test", Example: &corev1.ConfigMap{}, Exports: each == p.slices}).Informer
		i.Handle(func(_, _ metav1.Object) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.handlers++
			select {
			case p.changed <- struct{}{}:
			default:
			}
		})
		p.informers = append(p.informers, i)
		running.Go(func() { i.Run(contexts[each]) })
	}
	running.Go(func() { p.act(ctx) })
	synctest.Wait() // the watches are open
	return p
}

func (p *pair) act(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.changed:
		}
		p.group.Wait(ctx)
		p.mu.Lock()
		p.acted = known(p.informers[0]) + " with " + known(p.informers[1])
		p.mu.Unlock()
	}
}

func known(i *Informer) string {
	names := i.Indexer().ListKeys()
	slices.Sort(names)
	return strings.Join(names, ",")
}

func TestAfterAnOutageNothingIsMixed(t *testing.T) {
	down := errors.New("connection refused")
	// A step is an event, and the content of the caches on which act acts then.
	type step struct {
		name string
		do   func(p *pair)
		want string
	}
	fail := func(servers ...func(*pair) *server) func(*pair) {
		return func(p *pair) {
			for _, each := range servers {
				each(p).fail(down)
			}
		}
	}
	services, endpoints := func(p *pair) *server { return p.services }, func(p *pair) *server { return p.slices }
	change := func(names ...string) func(*pair) {
		return func(p *pair) {
			p.slices.put(names...)
			p.services.put(names...)
		}
	}
	heal := func(s func(*pair) *server) func(*pair) {
		return func(p *pair) {
			s(p).fail(nil)
			<-time.After(retried)
		}
	}
	pass := func(d time.Duration) func(*pair) { return func(*pair) { <-time.After(d) } }
	outage := step{"outage", fail(services, endpoints), "old with old"}
	changes := step{"both change meanwhile", change("new"), "old with old"}
	for name, steps := range map[string][]step{
		"a long outage": {
			outage, changes,
			{"time passes", pass(time.Hour), "old with old"},
			{"slices are read", heal(endpoints), "old with old"},
			{"services are read", heal(services), "new with new"},
		},
		"slices stay away": {
			outage, changes,
			{"services are read", heal(services), "old with old"},
			{"time passes", pass(patience), "new with old"},
			{"a service changes", func(p *pair) { p.services.put("newer") }, "newer with old"},
			{"slices are read", heal(endpoints), "newer with new"},
			{"another outage", fail(services, endpoints), "newer with new"},
			{"both change", change("last"), "newer with new"},
			{"services are read", heal(services), "newer with new"},
			{"slices are read", heal(endpoints), "last with last"},
		},
		"a watch is too old": {
			{"it says so", func(p *pair) {
				_ = p.slices.Broadcaster.Action(watch.Error, &metav1.Status{Code: 410, Reason: metav1.StatusReasonExpired})
			}, "old with old"},
			{"a service comes", func(p *pair) { p.services.put("new") }, "old with old"},
			{"slices are read", pass(retried), "new with old"},
		},
		"an informer that ends is waited for no longer": {
			outage, changes,
			{"services are read", heal(services), "old with old"},
			{"nobody needs slices", func(p *pair) { p.endSlices() }, "new with old"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t)
				for _, step := range steps {
					synctest.Wait()
					step.do(p)
					<-time.After(poll)
					synctest.Wait()
					p.mu.Lock()
					if p.acted != step.want {
						t.Errorf("%s: acted on %q, want %q", step.name, p.acted, step.want)
					}
					p.mu.Unlock()
				}
			})
		})
	}
}

// TestAListAfterALongOutage: reconciles wait again, even before the first object changes.
func TestAListAfterALongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.services.fail(syscall.ECONNREFUSED)
		p.slices.fail(syscall.ECONNREFUSED)
		p.slices.put("new")
		<-time.After(time.Hour)
		told := 0
		p.informers[1].Handle(func(_, _ metav1.Object) {
			told++
			if !p.group.holds() {
				t.Error("a handler is called, and reconciles do not wait")
			}
		})
		p.slices.fail(nil)
		<-time.After(retried)
		synctest.Wait()
		if told != 2 {
			t.Errorf("%d handlers were called, want 2", told)
		}
	})
}

// retried is the longest time between two tries, with a margin.
const retried = 6*time.Second + 500*time.Millisecond

// TestAWatchThatEnds: it is opened again. If that fails, all objects are listed. Each change is seen once, and no reconcile waits.
func TestAWatchThatEnds(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"opened":             {nil, "[list watch watch]"},
		"too busy":           {apierrors.NewTooManyRequests("", 1), "[list watch list watch]"},
		"connection refused": {syscall.ECONNREFUSED, "[list watch list watch]"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t)
				<-time.After(time.Minute) // a watch that ends at once is followed by a list
				p.handlers = 0
				p.slices.fail(test.err)
				p.slices.watch.Stop()
				synctest.Wait()
				if behind := len(p.group.behind) == 1; behind != (test.err != nil) {
					t.Errorf("behind: %t", behind)
				}
				p.slices.put("old", "new")
				p.slices.fail(nil)
				<-time.After(retried)
				synctest.Wait()
				if got, want := fmt.Sprint(p.slices.asked, "; ", p.acted, "; ", p.handlers, len(p.group.behind)), test.want+
					"; old with new,old; 1 0"; got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			})
		})
	}
}

// TestLate: Late returns only a resource on which exports depend, and only while it cannot be read.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		expect := func(when, want string) {
			t.Helper()
			synctest.Wait()
			if got := p.group.Late(time.Minute); got != want {
				t.Errorf("%s: got %q, want %q", when, got, want)
			}
		}
		synctest.Wait()
		p.services.fail(syscall.ECONNREFUSED)
		<-time.After(time.Hour)
		expect("what exports do not depend on", "")
		p.slices.fail(syscall.ECONNREFUSED)
		<-time.After(time.Minute - 1)
		expect("not for long", "")
		<-time.After(1)
		expect("for a minute", "test")
		p.slices.fail(nil)
		<-time.After(retried)
		expect("read again", "")
	})
}

// TestNobodyWaitsForEver: whenever one informer catches up, another one is behind.
func TestNobodyWaitsForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group FreshnessGate
		one, other := &Informer{}, &Informer{}
		group.set(one, true)
		var running sync.WaitGroup
		running.Go(func() {
			for range 2 * longest / time.Second {
				<-time.After(time.Second)
				group.set(other, true)
				group.set(one, false)
				one, other = other, one
			}
		})
		begin := time.Now()
		group.Wait(t.Context())
		if waited := time.Since(begin); waited != longest {
			t.Errorf("waited for %s", waited)
		}
		running.Wait()
	})
}
