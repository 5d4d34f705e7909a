// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// EventOverwritten is the reason of the Event on an object that another writer keeps reverting.
const EventOverwritten = "ObjectOverwritten"

// The backoff of writes that another writer reverts. The first repetitions are not delayed, so that a manual change is
// corrected at once. Creations have more of them, because clients need the object.
const (
	freeRepetitions = 3
	freeCreations   = 20
	minDelay        = time.Second
	maxDelay        = 5 * time.Minute
	// forgetAfter ends a fight after that long without a repetition. It exceeds maxDelay, so that the backoff of a
	// fight that continues does not start anew.
	forgetAfter = 2 * maxDelay
)

// fights holds the last write to each object. A write with the same content means that another writer reverted it;
// such repetitions are delayed with exponential backoff. Other writes are never delayed. It is safe for concurrent use.
type fights struct {
	mu      sync.Mutex
	objects map[uint64]fight // by fingerprint of the objectKey: there is one for each slice that was written
	purged  int              // number of objects after the last purge
}

// objectKey identifies an object, or its status.
type objectKey struct {
	kind, namespace, name string
	status                bool
	schema                string // of the API server; empty for kinds of Kubernetes
}

func (k objectKey) fingerprint() uint64 { return maphash.Comparable(seed, k) }

type fight struct {
	content     uint64    // fingerprint of the last write
	at          time.Time // time of the last write
	repetitions int       // consecutive writes of the same content after the first
	creation    bool      // the object was created
	version     string    // resourceVersion after the write
	kept        uint64    // fingerprint of the object that the API server stored, if that is not what was written
}

// free returns how many repetitions are not delayed.
func (f fight) free() int {
	if f.creation {
		return freeCreations
	}
	return freeRepetitions
}

// delay returns the time between the last write and the next repetition.
func (f fight) delay() time.Duration {
	if f.repetitions < f.free() {
		return 0
	}
	return min(maxDelay, minDelay<<min(f.repetitions-f.free(), 20))
}

// of returns the last write to an object, and whether it had that content.
func (f *fights) of(object objectKey, content uint64, now time.Time) (fight, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known, ok := f.objects[object.fingerprint()]
	return known, ok && known.content == content && now.Sub(known.at) <= forgetAfter
}

// wrote records a write and returns how many consecutive times the same content was written before.
func (f *fights) wrote(object objectKey, content uint64, creation bool, version string,
	now time.Time,
) (repetitions int) {
	known, repeated := f.of(object, content, now)
	f.mu.Lock()
	defer f.mu.Unlock()
	if repeated {
		repetitions = known.repetitions + 1
	}
	f.put(object, fight{content: content, at: now, repetitions: repetitions, creation: creation, version: version}, now)
	return repetitions
}

func (f *fights) put(object objectKey, last fight, now time.Time) {
	if f.objects == nil {
		f.objects = map[uint64]fight{}
	}
	f.objects[object.fingerprint()] = last
	if len(f.objects) > 2*max(f.purged, 512) {
		maps.DeleteFunc(f.objects, func(_ uint64, old fight) bool { return now.Sub(old.at) > forgetAfter })
		f.purged = len(f.objects)
	}
}

// settled records which object the API server stores for that content. It is identified by a fingerprint, because an
// etcd that was restored from a backup uses resourceVersions again.
func (f *fights) settled(object objectKey, content uint64, kept metav1.Object, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.objects[object.fingerprint()]
	known.content, known.at, known.version, known.kept = content, now, kept.GetResourceVersion(), fingerprint(kept)
	f.put(object, known, now)
}

// left records that a change by another writer is tolerated. This prolongs the fight.
func (f *fights) left(object objectKey, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known, ok := f.objects[object.fingerprint()]; ok {
		known.at = now
		f.objects[object.fingerprint()] = known
	}
}

// forget drops an object that this controller deleted.
func (f *fights) forget(object objectKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.objects, object.fingerprint())
}

// A guard delays the writes of one object in one pass. A nil guard delays none.
type guard[P any] struct {
	pass   *pass
	object objectKey
	// content returns what a write decides; see changes.
	content func(existing, desired P) any
	// minor reports whether a change that another writer reverted may be dropped. It is optional.
	minor func(existing, desired P) bool
	// delayed is set if a write was delayed, reported if the fight was reported.
	delayed, reported bool
}

// guarding returns the guard of an object in the namespace of the pass.
func guarding[P any](p *pass, kind, name string, content func(existing, desired P) any) *guard[P] {
	return &guard[P]{pass: p, object: objectKey{kind: kind, namespace: p.namespace(), name: name}, content: content}
}

// allows reports whether the object, which has that resourceVersion (empty for none), may be written now. reports is
// true once in a fight, before the first delay.
func (g *guard[P]) allows(existing, desired P, version string) (content uint64, allowed, reports bool) {
	if g == nil {
		return 0, true, false
	}
	now := g.pass.Clock.Now()
	content = fingerprint(g.content(existing, desired))
	known, repeated := g.pass.fights.of(g.object, content, now)
	if !repeated || older(version, known.version) {
		return content, true, false // an older version comes from a backup, not from another writer
	}
	if version != "" && known.kept == fingerprint(existing) {
		return content, false, false // the API server stores nothing else
	}
	if g.minor != nil && g.minor(existing, desired) {
		g.pass.fights.left(g.object, now)
		return content, false, false
	}
	if wait := known.at.Add(known.delay()).Sub(now); wait > 0 {
		g.delayed = true
		g.pass.retry(wait)
		return content, false, false
	}
	reports = !g.reported && known.repetitions == known.free()-1
	g.reported = g.reported || reports
	return content, true, reports
}

// wrote records a write after allows, with the object that the API server stored and whether that is as desired.
func (g *guard[P]) wrote(written metav1.Object, content uint64, creation, asDesired bool) {
	if g == nil {
		return
	}
	if !asDesired {
		g.pass.outcome.Again = true
	}
	now := g.pass.Clock.Now()
	g.pass.tracker.wrote(g.pass.observed.Service, written, now)
	if g.pass.fights.wrote(g.object, content, creation, written.GetResourceVersion(), now) > 0 {
		g.pass.Metrics.Repeated(g.object.kind)
	}
	if !asDesired {
		g.pass.fights.settled(g.object, content, written, now)
	}
}

// settled records that the API server kept the object as it was.
func (g *guard[P]) settled(content uint64, kept metav1.Object) {
	if g != nil {
		g.pass.fights.settled(g.object, content, kept, g.pass.Clock.Now())
	}
}

// report writes the Event about a fight. live has the managed fields, which name the other writer.
func (g *guard[P]) report(live metav1.Object) {
	regarding, ok := live.(runtime.Object)
	if !ok {
		return
	}
	writer := "Another writer"
	if manager := otherManager(live.GetManagedFields(), ownManager()); manager != "" {
		writer = fmt.Sprintf("Field manager %q", manager)
	}
	g.pass.Recorder.Event(regarding, corev1.EventTypeWarning, EventOverwritten, fmt.Sprintf(
		"%s keeps changing what this controller writes to %s %s/%s; the controller retries with growing delay. Have the other writer leave this object alone.",
		writer, g.object.kind, g.object.namespace, g.object.name))
}

// ownManager returns the field manager of this process.
func ownManager() string {
	manager, _, _ := strings.Cut(rest.DefaultKubernetesUserAgent(), "/")
	return manager
}

// otherManager returns the field manager other than own that wrote last, empty if there is none.
func otherManager(fields []metav1.ManagedFieldsEntry, own string) string {
	var last metav1.ManagedFieldsEntry
	for _, entry := range fields {
		if entry.Manager != own && (last.Manager == "" || entry.Time != nil && last.Time.Before(entry.Time)) {
			last = entry
		}
	}
	return last.Manager
}

// retry requeues the service after the shortest of the delays that were asked for.
func (p *pass) retry(after time.Duration) {
	if p.outcome.After == 0 || after < p.outcome.After {
		p.outcome.After = after
	}
}

// changes are the changes of a write to an object's metadata, and the rest of what it decides. Values of other writers
// that the write keeps are left out, so that a fight is recognized even if those change each time.
type changes struct {
	UID                 types.UID // set if a new object of the same name is no repetition
	Labels, Annotations map[string]*string
	Owners              []metav1.OwnerReference
	Rest                any
}

func changesOf(existing, desired metav1.Object, decided any) changes {
	return changes{
		Labels:      changed(existing.GetLabels(), desired.GetLabels()),
		Annotations: changed(existing.GetAnnotations(), desired.GetAnnotations()),
		Owners:      desired.GetOwnerReferences(),
		Rest:        decided,
	}
}

// changed maps the keys that differ to their new values, nil for removed keys.
func changed(before, after map[string]string) map[string]*string {
	result := map[string]*string{}
	for key := range before {
		if _, stays := after[key]; !stays {
			result[key] = nil
		}
	}
	for key, value := range after {
		if old, had := before[key]; !had || old != value {
			result[key] = &value
		}
	}
	return result
}

// changedConditions returns the conditions that differ in more than their transition time, without that time.
func changedConditions(before, after []metav1.Condition) []metav1.Condition {
	var result []metav1.Condition
	for _, condition := range after {
		condition.LastTransitionTime = metav1.Time{}
		if !slices.ContainsFunc(before, func(old metav1.Condition) bool {
			old.LastTransitionTime = metav1.Time{}
			return old == condition
		}) {
			result = append(result, condition)
		}
	}
	return result
}

// exportStatusGuard returns the guard for the status of a ServiceExport. It tolerates messages of another writer if the
// conditions are otherwise equal.
func exportStatusGuard(p *pass, name string) *guard[*v1beta1.ServiceExport] {
	g := guarding(p, v1beta1.ServiceExportKindName, name, func(existing, desired *v1beta1.ServiceExport) any {
		return changes{UID: desired.UID, Rest: changedConditions(existing.Status.Conditions, desired.Status.Conditions)}
	})
	g.object.status = true
	g.minor = func(existing, desired *v1beta1.ServiceExport) bool {
		return sameMeaning(existing.Status.Conditions, desired.Status.Conditions)
	}
	return g
}

// importStatusGuard returns the guard for the status of a ServiceImport.
func importStatusGuard(p *pass, name string) *guard[*v1beta1.ServiceImport] {
	g := guarding(p, v1beta1.ServiceImportKindName, name, func(existing, desired *v1beta1.ServiceImport) any {
		status := desired.Status
		status.Conditions = changedConditions(existing.Status.Conditions, status.Conditions)
		return changes{UID: desired.UID, Rest: status}
	})
	g.object.status = true
	return g
}

// sameMeaning reports whether conditions differ at most in their messages.
func sameMeaning(before, after []metav1.Condition) bool {
	if len(before) != len(after) {
		return false
	}
	for _, condition := range changedConditions(before, after) {
		if !slices.ContainsFunc(before, func(old metav1.Condition) bool {
			return old.Type == condition.Type && old.Status == condition.Status && old.Reason == condition.Reason &&
				old.ObservedGeneration == condition.ObservedGeneration
		}) {
			return false
		}
	}
	return true
}

var seed = maphash.MakeSeed()

func fingerprint(content any) uint64 {
	text, err := json.Marshal(content)
	if err != nil {
		return 0 // API objects always marshal
	}
	return maphash.Bytes(seed, text)
}
