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

// EventOverwritten is the reason of the Event on an object that another writer
// keeps changing back.
const EventOverwritten = "ObjectOverwritten"

// How writes are slowed that another writer undoes. The first repetitions are
// free: an object changed by hand is corrected at once, and one that is deleted
// is created at once more often, since clients miss it.
const (
	freeRepetitions = 3
	freeCreations   = 20
	minHold         = time.Second
	maxHold         = 5 * time.Minute
	// calm is after how long without a repetition all is forgotten; longer than
	// maxHold, so that a fight that goes on stays slow.
	calm = 2 * maxHold
)

// fights remembers what was written last to which object, so that a write that
// says the same again is recognized: somebody undid it. Repetitions are held
// back for a time that grows. A write that says something else is never held
// back. It is safe for concurrent use.
type fights struct {
	mu      sync.Mutex
	objects map[written]fight
	purged  int // how many there were after the last purge
}

// written names an object, or the status of one.
type written struct {
	kind, namespace, name string
	status                bool
	schema                string // of the API server; empty for kinds of Kubernetes
}

type fight struct {
	content     uint64    // fingerprint of what was written last
	at          time.Time // when
	repetitions int       // how often in a row it was written again
	creation    bool      // what was written is the whole object
	version     string    // resourceVersion of what was written
	kept        uint64    // fingerprint of what the API server made of it
}

// free is how many repetitions are not held back.
func (f fight) free() int {
	if f.creation {
		return freeCreations
	}
	return freeRepetitions
}

// hold is for how long the next repetition waits after the last write.
func (f fight) hold() time.Duration {
	if f.repetitions < f.free() {
		return 0
	}
	return min(maxHold, minHold<<min(f.repetitions-f.free(), 20))
}

// of returns what is known of an object if that content was written last.
func (f *fights) of(object written, content uint64, now time.Time) (fight, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known, ok := f.objects[object]
	return known, ok && known.content == content && now.Sub(known.at) <= calm
}

// wrote notes a write, and returns how often in a row the same was written
// before.
func (f *fights) wrote(object written, content uint64, creation bool, version string, now time.Time) (repetitions int) {
	known, repeated := f.of(object, content, now)
	f.mu.Lock()
	defer f.mu.Unlock()
	if repeated {
		repetitions = known.repetitions + 1
	}
	f.put(object, fight{content: content, at: now, repetitions: repetitions, creation: creation, version: version}, now)
	return repetitions
}

func (f *fights) put(object written, last fight, now time.Time) {
	if f.objects == nil {
		f.objects = map[written]fight{}
	}
	f.objects[object] = last
	if len(f.objects) > 2*max(f.purged, 512) {
		maps.DeleteFunc(f.objects, func(_ written, old fight) bool { return now.Sub(old.at) > calm })
		f.purged = len(f.objects)
	}
}

// settled notes what the API server keeps of a write of that content. The version
// does not identify it: an etcd that was restored from a backup uses versions again.
func (f *fights) settled(object written, content uint64, kept metav1.Object, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.objects[object]
	known.content, known.at, known.version, known.kept = content, now, kept.GetResourceVersion(), fingerprint(kept)
	f.put(object, known, now)
}

// left notes that what another writer made of an object was left alone, which
// it is for as long as the object is looked at now and then.
func (f *fights) left(object written, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known, ok := f.objects[object]; ok {
		known.at = now
		f.objects[object] = known
	}
}

// forget forgets an object that this controller deleted.
func (f *fights) forget(object written) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.objects, object)
}

// A guard slows the writes of one object in one pass. The zero value slows
// nothing.
type guard[P any] struct {
	pass   *pass
	object written
	// content is what a write decides; see changes.
	content func(existing, desired P) any
	// minor reports whether a change may be left to another writer that undid it
	// before; nil for no change.
	minor func(existing, desired P) bool
	// held is set if a write was held back, reported if the fight was reported.
	held, reported bool
}

// guarding returns the guard of an object in the namespace of the pass.
func guarding[P any](p *pass, kind, name string, content func(existing, desired P) any) *guard[P] {
	return &guard[P]{pass: p, object: written{kind: kind, namespace: p.namespace(), name: name}, content: content}
}

// allows reports whether the write to an object of that resourceVersion, empty for
// none, may be made now, and whether the fight is to
// be reported with it: once, when repetitions begin to be held back.
func (g *guard[P]) allows(existing, desired P, version string) (content uint64, allowed, reports bool) {
	if g == nil {
		return 0, true, false
	}
	now := g.pass.Clock.Now()
	content = fingerprint(g.content(existing, desired))
	known, repeated := g.pass.fights.of(g.object, content, now)
	if !repeated || older(version, known.version) {
		return content, true, false // the latter is of a backup, and of no other writer
	}
	if version != "" && known.kept == fingerprint(existing) {
		return content, false, false // the API server keeps no more of it
	}
	if g.minor != nil && g.minor(existing, desired) {
		g.pass.fights.left(g.object, now)
		return content, false, false
	}
	if wait := known.at.Add(known.hold()).Sub(now); wait > 0 {
		g.held = true
		g.pass.retry(wait)
		return content, false, false
	}
	reports = !g.reported && known.repetitions == known.free()-1
	g.reported = g.reported || reports
	return content, true, reports
}

// wrote notes a write that allows allowed, what the API server made of it, and
// whether that is what was desired.
func (g *guard[P]) wrote(written metav1.Object, content uint64, creation, asDesired bool) {
	if g == nil {
		return
	}
	if !asDesired {
		g.pass.outcome.Again = true
	}
	known := g.pass.noting()
	known.echoes = append(known.echoes, written)
	now := g.pass.Clock.Now()
	if g.pass.fights.wrote(g.object, content, creation, written.GetResourceVersion(), now) > 0 {
		g.pass.Metrics.Repeated(g.object.kind)
	}
	if !asDesired {
		g.pass.fights.settled(g.object, content, written, now)
	}
}

// settled notes that the API server keeps the object as it is.
func (g *guard[P]) settled(content uint64, kept metav1.Object) {
	if g != nil {
		g.pass.fights.settled(g.object, content, kept, g.pass.Clock.Now())
	}
}

// report writes the Event of a fight on the object, which carries its managed
// fields.
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

// ownManager is the field manager that the API server names this process.
func ownManager() string {
	manager, _, _ := strings.Cut(rest.DefaultKubernetesUserAgent(), "/")
	return manager
}

// otherManager is the field manager that wrote last, apart from the own one;
// empty if none did.
func otherManager(fields []metav1.ManagedFieldsEntry, own string) string {
	var last metav1.ManagedFieldsEntry
	for _, entry := range fields {
		if entry.Manager != own && (last.Manager == "" || entry.Time != nil && last.Time.Before(entry.Time)) {
			last = entry
		}
	}
	return last.Manager
}

// retry asks for another pass after a while, the shortest that is asked for.
func (p *pass) retry(after time.Duration) {
	if p.outcome.After == 0 || after < p.outcome.After {
		p.outcome.After = after
	}
}

// changes is what a write changes in an object's metadata, and what else it
// decides. What others set and the write keeps is no part of it, so that a fight
// is recognized although they change it each time.
type changes struct {
	UID                 types.UID // if a new object of the name is no repetition
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

// changed maps the keys that differ to the new values, nil for a key that goes.
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

// changedConditions are those that differ in more than the time of their
// transition, without it.
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

// exportStatusGuard is the guard of the status of a ServiceExport. A message
// that another writer replaced is left alone: the condition says the same.
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

// importStatusGuard is the guard of the status of a ServiceImport.
func importStatusGuard(p *pass, name string) *guard[*v1beta1.ServiceImport] {
	g := guarding(p, v1beta1.ServiceImportKindName, name, func(existing, desired *v1beta1.ServiceImport) any {
		status := desired.Status
		status.Conditions = changedConditions(existing.Status.Conditions, status.Conditions)
		return changes{UID: desired.UID, Rest: status}
	})
	g.object.status = true
	return g
}

// sameMeaning reports whether conditions differ in messages at most.
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
