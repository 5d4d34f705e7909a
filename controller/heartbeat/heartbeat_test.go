// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

const staleAfter = 30 * time.Second

var web, db = types.NamespacedName{Namespace: "demo", Name: "web"}, types.NamespacedName{Namespace: "demo", Name: "db"}

type faults struct {
	refused error  // the API server's, for EndpointSlices
	inputs  string // that are late
}

// A beating is a Renewer of cluster east with a fake API server.
type beating struct {
	*Renewer
	client *fake.Clientset
	events *record.FakeRecorder

	annotations map[string]string

	faults  atomic.Pointer[faults]
	retried []string
}

func newBeating(expected map[types.NamespacedName]struct{}, objects ...runtime.Object) *beating {
	b := &beating{client: fake.NewClientset(objects...), events: record.NewFakeRecorder(10)}
	b.faults.Store(new(faults))
	b.client.PrependReactor("create", "endpointslices", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, action.(clienttesting.CreateAction).GetObject(), b.faults.Load().refused
	})
	b.Renewer = New(Config{
		Client: b.client, Namespace: "system", Cluster: "east",
		Clock: clock.RealClock{}, Recorder: b.events, Annotations: func() map[string]string { return b.annotations },
		Retry: func(service types.NamespacedName) { b.retried = append(b.retried, service.String()) },
		After: staleAfter,
		Late:  func(time.Duration) string { return b.faults.Load().inputs },
	}, expected)
	return b
}

// renewed returns how long ago the heartbeat was renewed, as "5s ago by east", and the Events since the last call.
func (b *beating) renewed(t *testing.T) string {
	t.Helper()
	synctest.Wait()
	text := "never"
	if lease, err := b.client.CoordinationV1().Leases("system").Get(t.Context(), member.HeartbeatLease,
		metav1.GetOptions{}); err == nil {
		text = fmt.Sprintf("%s ago by %s", time.Since(lease.Spec.RenewTime.Time), *lease.Spec.HolderIdentity)
	}
	for len(b.events.Events) > 0 {
		text += "; " + strings.Join(strings.Fields(<-b.events.Events)[:2], " ")
	}
	return text
}

// TestHeartbeatVouchesForTheSlices: the heartbeat begins once each expected service was reconciled, even if that failed, stops
// while slices cannot be written, and resumes when they can.
func TestHeartbeatVouchesForTheSlices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		<-New(Config{}, nil).Seen() // a cluster that exports nothing waits for nothing
		denied := errors.New("denied")
		b := newBeating(map[types.NamespacedName]struct{}{web: {}, db: {}})
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { b.Run(ctx) })
		defer running.Wait()
		defer stop()
		expect := func(when, want string) {
			t.Helper()
			if got := b.renewed(t); got != want {
				t.Errorf("%s: renewed %s, want %s", when, got, want)
			}
		}
		pass := func(err error) { b.Reconciled(web, err) }
		pass(nil)
		pass(nil)
		b.Reconciled(types.NamespacedName{Name: "other"}, nil)
		<-time.After(time.Minute)
		expect("before one export was looked at", "never")
		b.Reconciled(db, denied)
		expect("after all exports were looked at", "0s ago by east")
		b.Reconciled(db, nil)
		<-time.After(time.Minute)
		expect("at rest", "0s ago by east")

		pass(denied)
		<-time.After(time.Minute)
		expect("a quota of one namespace", "0s ago by east")
		pass(nil)

		b.faults.Store(&faults{refused: denied})
		pass(denied)
		<-time.After(staleAfter - liveness.HeartbeatInterval)
		expect("not for long", "0s ago by east")
		<-time.After(time.Minute)
		expect("denied everywhere", "1m0s ago by east; Warning HeartbeatStopped")
		<-time.After(time.Minute)
		expect("for long", "2m0s ago by east")
		reason, message := b.Doubted()
		if reason != WritesFail || !strings.Contains(message, denied.Error()) || len(b.retried) > 0 {
			t.Errorf("the reason is %q (%s), and %v are retried", reason, message, b.retried)
		}
		b.faults.Store(new(faults))
		<-time.After(liveness.HeartbeatInterval)
		expect("allowed again", "0s ago by east; Normal HeartbeatResumed")
		if fmt.Sprint(b.retried) != "[demo/web]" {
			t.Errorf("retried are %v", b.retried)
		}
		b.faults.Store(&faults{inputs: "Services"})
		<-time.After(time.Minute)
		expect("Services cannot be read", "1m0s ago by east; Warning HeartbeatStopped")
		b.faults.Store(new(faults))
		<-time.After(liveness.HeartbeatInterval)
		expect("Services can be read again", "0s ago by east; Normal HeartbeatResumed")
		for _, action := range b.client.Actions() {
			if action, ok := action.(clienttesting.CreateActionImpl); ok &&
				action.GetResource().Resource == "endpointslices" {
				slice := action.GetObject().(*discoveryv1.EndpointSlice)
				if fmt.Sprint(action.GetCreateOptions().DryRun) != "[All]" || slice.Namespace != "" &&
					slice.Namespace != "system" || slice.Labels[export.LabelSourceCluster] != "east" {
					t.Fatalf("probed with %v in %s: %v", action.GetCreateOptions(), action.GetNamespace(), slice)
				}
			}
		}
	})
}

// TestAnnotations: the heartbeat has the annotations of its last renewal, and keeps those of other writers.
func TestAnnotations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBeating(nil, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: "system", Name: member.HeartbeatLease, Annotations: map[string]string{
				"other": "kept", export.Domain + "/a": "old", export.Domain + "/newer": "unknown",
			},
		}})
		for _, want := range []string{"", "1", "2", ""} {
			b.annotations = map[string]string{export.Domain + "/a": want}
			if err := b.renew(t.Context()); err != nil {
				t.Fatal(err)
			}
			lease, err := b.client.CoordinationV1().Leases("system").Get(t.Context(), member.HeartbeatLease, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got, found := lease.Annotations[export.Domain+"/a"]
			if got != want || found != (want != "") || lease.Annotations["other"] != "kept" ||
				lease.Annotations[export.Domain+"/newer"] != "" {
				t.Errorf("got %v, want %q", lease.Annotations, want)
			}
		}
		leases := b.client.CoordinationV1().Leases("system")
		if err := leases.Delete(t.Context(), member.HeartbeatLease, metav1.DeleteOptions{}); err != nil || b.renew(t.Context()) == nil {
			t.Fatalf("renewed a Lease that does not exist: %v", err)
		}
		if err := b.renew(t.Context()); err != nil {
			t.Errorf("a Lease that was deleted is not made again: %v", err)
		}
	})
}
