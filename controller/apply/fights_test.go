// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// store is one name of an API server. live is never nil.
type store[T any, P object[T]] struct {
	live    P
	version int
	updates int
}

func (s *store[T, P]) put(object P) P {
	s.version++
	copied := *object
	s.live = &copied
	s.live.SetResourceVersion(strconv.Itoa(s.version))
	return s.live
}

func (s *store[T, P]) Get(context.Context, string, metav1.GetOptions) (P, error) { return s.live, nil }

func (s *store[T, P]) Create(_ context.Context, object P, _ metav1.CreateOptions) (P, error) {
	return s.put(object), nil
}

func (s *store[T, P]) Update(_ context.Context, object P, _ metav1.UpdateOptions) (P, error) {
	s.updates++
	return s.put(object), nil
}

func (s *store[T, P]) Delete(context.Context, string, metav1.DeleteOptions) error { return nil }

// ring is an applier at a certain time, and what it reported.
type ring struct {
	noMetrics
	*Applier
	clock    *clocktesting.FakePassiveClock
	events   *record.FakeRecorder
	repeated int
}

func newRing() *ring {
	r := &ring{clock: clocktesting.NewFakePassiveClock(time.Unix(1000, 0)), events: record.NewFakeRecorder(100)}
	r.Applier = &Applier{Clock: r.clock, Recorder: r.events, Metrics: r}
	return r
}

// Repeated implements Metrics.
func (r *ring) Repeated(string) { r.repeated++ }

func (r *ring) pass() *pass {
	return &pass{Applier: r.Applier, observed: merge.Observed{Service: types.NamespacedName{
		Namespace: "demo",
		Name:      "web",
	}}}
}

func (r *ring) wait(d time.Duration) { r.clock.SetTime(r.clock.Now().Add(d)) }

func (r *ring) told() []string {
	var told []string
	for len(r.events.Events) > 0 {
		told = append(told, <-r.events.Events)
	}
	return told
}

// writeValue has the Service carry a value, as this controller would.
func (r *ring) writeValue(t *testing.T, s *store[corev1.Service, *corev1.Service], value string) (retry time.Duration) {
	t.Helper()
	p := r.pass()
	guard := guarding(p, "Service", "web")
	desired := s.live.DeepCopy()
	desired.Annotations["value"] = value
	if _, err := write(t.Context(), guard, s, "web", s.live, desired, equalService); err != nil {
		t.Fatal(err)
	}
	return p.outcome.After
}

// undo has another writer set the value, and something else that this controller keeps.
func undo(s *store[corev1.Service, *corev1.Service], at time.Time) {
	theirs := s.live.DeepCopy()
	theirs.Annotations = map[string]string{"value": "theirs", "example.com/at": at.String()}
	early, late, last := metav1.NewTime(at.Add(-time.Hour)), metav1.NewTime(at), metav1.NewTime(at.Add(time.Second))
	theirs.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "kubectl", Time: &early}, {Manager: "argocd", Time: &late}, {Manager: ownManager(), Time: &last},
	}
	s.put(theirs)
}

// TestFightSlowsDown: another writer undoes each write at once. The first repetitions are immediate, the rest is slowed
// and reported once, and it is over some time after the other one ended.
func TestFightSlowsDown(t *testing.T) {
	r, s := newRing(), &store[corev1.Service, *corev1.Service]{}
	s.put(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "demo"}})
	begin := r.clock.Now()
	var last time.Duration
	for r.clock.Since(begin) < time.Hour {
		undo(s, r.clock.Now())
		before := s.updates
		retry := r.writeValue(t, s, "ours")
		if s.updates == before && (retry <= 0 || retry > maxDelay) {
			t.Fatalf("a write is held back and to be made after %s", retry)
		}
		last = max(last, retry)
		r.wait(time.Second)
	}
	if s.updates < 10 || s.updates > 30 {
		t.Errorf("in an hour there were %d writes", s.updates)
	}
	if last != maxDelay-time.Second {
		t.Errorf("a write was held back for %s at most", last)
	}
	if r.repeated != s.updates-1 {
		t.Errorf("%d of %d writes counted as repeated", r.repeated, s.updates)
	}
	if told := r.told(); len(told) != 1 || !strings.Contains(told[0], EventOverwritten) ||
		!strings.Contains(told[0], `"argocd"`) || !strings.Contains(told[0], "Service demo/web") {
		t.Errorf("told %q", told)
	}

	r.wait(forgetAfter + time.Second)
	before := s.updates
	undo(s, r.clock.Now())
	if retry := r.writeValue(t, s, "ours"); retry > 0 || s.updates != before+1 {
		t.Errorf("after forgetAfter the write is made after %s", retry)
	}
}

// TestDeletedObjectIsCreatedAgain: an object that somebody deletes is created at
// once many times, and one that is deleted without end is slowed and reported.
func TestDeletedObjectIsCreatedAgain(t *testing.T) {
	r, s := newRing(), &store[corev1.Service, *corev1.Service]{}
	s.put(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "demo"}})
	created, free := 0, 0
	for begin := r.clock.Now(); r.clock.Since(begin) < time.Hour; r.wait(time.Second) {
		p, before := r.pass(), s.version
		guard := guarding(p, "Service", "web")
		_, err := write(t.Context(), guard, s, "web", nil,
			&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "demo"}}, equalService)
		switch {
		case err != nil:
			t.Fatal(err)
		case s.version > before:
			created++
		case p.outcome.After <= 0 || p.outcome.After > maxDelay:
			t.Fatalf("a creation is held back and to be made after %s", p.outcome.After)
		}
		if len(r.events.Events) == 0 {
			free = created
		}
	}
	if free < 20 || created-free < 10 || created-free > 30 {
		t.Errorf("%d creations at once and %d later, want at least 20 and few", free, created-free)
	}
	if told := r.told(); len(told) != 1 || !strings.Contains(told[0], "Service demo/web") {
		t.Errorf("told %q", told)
	}
}

// TestFightOverPublishedSlice: while the write of a slice that the local cluster publishes is held back, the slice is
// not as it should be, and readers of the cluster are not told otherwise. A copy concerns this cluster alone.
func TestFightOverPublishedSlice(t *testing.T) {
	for slice, own := range map[string]bool{"east-1": true, "west-1": false} {
		t.Run(slice, func(t *testing.T) {
			r, server := newRing(), &sliceServer{}
			reconcile := func() (behind, error) { // each time the other writer has undone the last write
				p := slicePass(server, merge.Observed{ServiceImport: ownImport()}, slice, slice+"+")
				p.existing.EndpointSlices[0].ResourceVersion = strconv.Itoa(2*len(server.asked) + 1)
				r.Core = p.Core
				p.Applier = r.Applier
				late := p.writeSlices(t.Context())
				return late, errors.Join(errors.New("another"), late.err())
			}
			isMarked := func(err error) bool {
				marked := (*PublishError)(nil)
				return errors.As(err, &marked)
			}
			for i := range 1 + freeRepetitions {
				if late, err := reconcile(); len(late) > 0 || len(server.asked) != i+1 {
					t.Fatalf("write %d is held back: %v", i, err)
				}
			}
			late, err := reconcile()
			if len(late) != 1 || len(server.asked) != 1+freeRepetitions {
				t.Fatalf("the write is not held back: %v, %q", late, server.asked)
			}
			if isMarked(err) != own || own != strings.Contains(err.Error(), "demo/"+slice) {
				t.Errorf("while the write is held back: got %v", err)
			}
			r.wait(minDelay)
			if late, err := reconcile(); len(late) > 0 || isMarked(err) || len(server.asked) != 2+freeRepetitions {
				t.Errorf("after the delay: got %v, %q", err, server.asked)
			}
		})
	}
}

// TestWhatTheAPIServerDropsIsAskedForOnce: a definition of older date has fewer fields. A write that changes nothing is
// made once for each version of the object.
func TestWhatTheAPIServerDropsIsAskedForOnce(t *testing.T) {
	r, live := newRing(), webService("1", "kept")
	s := stubborn{&server{live: live}}
	writes := func() int {
		for range 3 {
			p := r.pass()
			guard := guarding(p, "Service", "web")
			got, err := write(t.Context(), guard, s, "web", live, webService(live.ResourceVersion, "dropped"),
				equalService)
			if err != nil || got != live || p.outcome.After > 0 || p.outcome.Again {
				t.Fatalf("got %v, %v, %+v", got, err, p.outcome)
			}
			r.wait(time.Second)
		}
		return len(s.asked)
	}
	if got := writes(); got != 1 {
		t.Errorf("asked %d times, want once", got)
	}
	live.ResourceVersion = "2"
	if got := writes(); got != 2 {
		t.Errorf("asked %d times after another writer changed the object, want twice", got)
	}
	if told := r.told(); len(told) > 0 || r.repeated > 0 {
		t.Errorf("told %q, %d repeated", told, r.repeated)
	}
}

// TestOtherContentIsNotHeldBack: what changes and changes back by the word of the exports is no fight, however fast.
func TestOtherContentIsNotHeldBack(t *testing.T) {
	r, s := newRing(), &store[corev1.Service, *corev1.Service]{}
	s.put(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{}}})
	for i := range 100 {
		if retry := r.writeValue(t, s, strconv.Itoa(i%2)); retry > 0 || s.updates != i+1 {
			t.Fatalf("write %d is held back for %s", i, retry)
		}
	}
	if told := r.told(); len(told) > 0 || r.repeated > 0 {
		t.Errorf("told %q, %d repeated", told, r.repeated)
	}
}

// TestDeletedByThisControllerIsNoFight: what it deletes and makes again was not undone by another.
func TestDeletedByThisControllerIsNoFight(t *testing.T) {
	r := newRing()
	for range 5 {
		guard := guarding(r.pass(), "Service", "web")
		guard.wrote(1, webService("1", ""), true, false)
		r.fights.forget(guard.object)
	}
	if r.repeated > 0 {
		t.Errorf("%d writes count as repeated", r.repeated)
	}
}

// TestOldFightsAreForgotten: what is remembered is bounded by the writes of some minutes.
func TestOldFightsAreForgotten(t *testing.T) {
	var f fights
	for i := range 100_000 {
		f.put(objectKey{name: strconv.Itoa(i)}, fight{content: 1, at: time.Unix(int64(i), 0)})
	}
	if most := 2*int(forgetAfter/time.Second) + 2; len(f.objects) > most {
		t.Errorf("%d writes are remembered, at most %d should", len(f.objects), most)
	}
}

// theirConditions are those that Cilium sets.
func theirConditions(export *v1beta1.ServiceExport, generation int64, valid metav1.ConditionStatus) {
	for _, condition := range []metav1.Condition{
		v1beta1.NewServiceExportCondition(v1beta1.ServiceExportConditionValid, valid, v1beta1.ServiceExportReasonValid,
			"ServiceExport is valid"),
		v1beta1.NewServiceExportCondition(v1beta1.ServiceExportConditionReady, metav1.ConditionTrue,
			v1beta1.ServiceExportReasonReady, "ServiceExport is ready"),
		v1beta1.NewServiceExportCondition(v1beta1.ServiceExportConditionConflict, metav1.ConditionFalse,
			v1beta1.ServiceExportReasonNoConflicts, "ServiceExport has no conflicts"),
	} {
		condition.ObservedGeneration = generation
		meta.SetStatusCondition(&export.Status.Conditions, condition)
	}
}

// TestConditionsFight: another implementation writes the conditions of the same export each time that they change. The
// fight is slowed.
func TestConditionsFight(t *testing.T) {
	for name, test := range map[string]struct {
		generation int64
		valid      metav1.ConditionStatus
	}{
		"only messages differ":               {3, metav1.ConditionTrue},
		"another observedGeneration as well": {0, metav1.ConditionTrue},
		"another status as well":             {3, metav1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := newRing(), &store[v1beta1.ServiceExport, *v1beta1.ServiceExport]{}
			s.put(&v1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{
				Namespace: "demo", Name: "web", UID: "1",
				Generation: 3,
			}})
			message := "The Service can be exported."
			reconcile := func() {
				desired := s.live.DeepCopy()
				for i, kind := range []string{"Valid", "Ready", "Conflict"} {
					meta.SetStatusCondition(&desired.Status.Conditions, metav1.Condition{
						Type: kind, Status: []metav1.ConditionStatus{"True", "True", "False"}[i],
						Reason:  []string{"Valid", "Ready", "NoConflicts"}[i],
						Message: message, ObservedGeneration: 3, LastTransitionTime: metav1.NewTime(r.clock.Now()),
					})
				}
				if _, err := write(t.Context(), guardingStatus(r.pass(), v1beta1.ServiceExportKindName, "web"), s, "web", s.live, desired,
					equalExportStatus); err != nil {
					t.Fatal(err)
				}
			}
			for range 3600 {
				reconcile()
				theirs := s.live.DeepCopy()
				theirConditions(theirs, test.generation, test.valid)
				s.put(theirs)
				r.wait(time.Second)
			}
			if s.updates > 30 {
				t.Errorf("the conditions were written %d times in an hour, at most 30 expected", s.updates)
			}
			// What this controller has to say anew it does say.
			before := s.updates
			message = "The Service can be exported. A port is left out."
			reconcile()
			if s.updates != before+1 || meta.FindStatusCondition(s.live.Status.Conditions, "Valid").Message != message {
				t.Errorf("a new message is not written: %v", s.live.Status.Conditions)
			}
		})
	}
}
