// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
}

type fight struct {
	content     uint64    // fingerprint of the last write
	version     string    // resourceVersion after it
	at          time.Time // time of the last write
	repetitions int       // consecutive writes of the same content after the first
	creation    bool      // the object was created
	reported    bool
}

// delay returns the time between the last write and the next repetition.
func (f fight) delay() time.Duration {
	free := freeRepetitions
	if f.creation {
		free = freeCreations
	}
	if f.repetitions < free {
		return 0
	}
	return min(maxDelay, minDelay<<min(f.repetitions-free, 20))
}

// of returns the last write to an object, and whether it had that content.
func (f *fights) of(object objectKey, content uint64, now time.Time) (fight, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known, ok := f.objects[maphash.Comparable(seed, object)]
	return known, ok && known.content == content && now.Sub(known.at) <= forgetAfter
}

func (f *fights) put(object objectKey, last fight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.objects == nil {
		f.objects = map[uint64]fight{}
	}
	f.objects[maphash.Comparable(seed, object)] = last
	if len(f.objects) > 2*max(f.purged, 512) {
		maps.DeleteFunc(f.objects, func(_ uint64, old fight) bool { return last.at.Sub(old.at) > forgetAfter })
		f.purged = len(f.objects)
	}
}

// forget drops an object that this controller deleted.
func (f *fights) forget(object objectKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.objects, maphash.Comparable(seed, object))
}

// A guard delays the writes of one object in one pass.
type guard struct {
	pass   *pass
	object objectKey
	// delayed is set if a write was delayed.
	delayed bool
}

// guarding returns the guard of an object in the namespace of the pass.
func guarding(p *pass, kind, name string) *guard {
	return &guard{pass: p, object: objectKey{kind: kind, namespace: p.namespace(), name: name}}
}

// guardingStatus returns the guard of the status of an object of the MCS API.
func guardingStatus(p *pass, kind, name string) *guard {
	g := guarding(p, kind, name)
	g.object.status = true
	return g
}

// allows reports whether the object, which has that resourceVersion (empty for none), may be written now. begins is true
// once in a fight, at its first delay.
func (g *guard) allows(content uint64, version string) (allowed, begins bool) {
	now := g.pass.Clock.Now()
	known, repeated := g.pass.fights.of(g.object, content, now)
	if !repeated {
		return true, false
	}
	if version != "" && version == known.version {
		return false, false // nobody changed it since, so the API server or a webhook does not store the content
	}
	wait := known.at.Add(known.delay()).Sub(now)
	if wait <= 0 {
		return true, false
	}
	g.delayed = true
	g.pass.retry(wait)
	begins = !known.reported
	known.reported = true
	g.pass.fights.put(g.object, known)
	return false, begins
}

// wrote notes a write after allows, with the object that the API server stores since, or kept as it was.
func (g *guard) wrote(content uint64, stored metav1.Object, creation, kept bool) {
	now := g.pass.Clock.Now()
	known, repeated := g.pass.fights.of(g.object, content, now)
	last := fight{content: content, version: stored.GetResourceVersion(), at: now, creation: creation}
	if repeated {
		last.repetitions, last.reported = known.repetitions, known.reported
	}
	if repeated && !kept {
		last.repetitions++
		g.pass.Metrics.Repeated(g.object.kind)
	}
	g.pass.fights.put(g.object, last)
}

// report writes the Event about a fight. live has the managed fields, which name the other writer.
func (g *guard) report(live reportable) {
	writer := "Another writer"
	if manager := otherManager(live.GetManagedFields(), ownManager()); manager != "" {
		writer = fmt.Sprintf("Field manager %q", manager)
	}
	g.pass.Recorder.Event(live, corev1.EventTypeWarning, EventOverwritten, fmt.Sprintf(
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

var seed = maphash.MakeSeed()

// content returns a fingerprint of what a write of an object decides. Labels and annotations that it leaves as they are
// in the existing object (nil for none) do not count: other writers may change theirs each time.
func (g *guard) content(existing, desired metav1.Object) uint64 {
	if existing == nil {
		existing = &metav1.ObjectMeta{}
	}
	var decided []any
	if g.object.status {
		decided = []any{desired.GetUID()} // a new object of the same name is no repetition
	} else {
		decided = []any{
			changed(existing.GetLabels(), desired.GetLabels()),
			changed(existing.GetAnnotations(), desired.GetAnnotations()), desired.GetOwnerReferences(),
		}
	}
	switch desired := desired.(type) {
	case *v1beta1.ServiceImport:
		if g.object.status {
			decided = append(decided, undated(desired.Status.Conditions), desired.Status.Clusters)
		} else {
			decided = append(decided, desired.Spec)
		}
	case *v1beta1.ServiceExport:
		decided = append(decided, undated(desired.Status.Conditions))
	case *corev1.Service:
		decided = append(decided, desired.Spec)
	case *discoveryv1.EndpointSlice:
		decided = append(decided, desired.Endpoints, desired.Ports)
	}
	text, err := json.Marshal(decided)
	if err != nil {
		return 0 // API objects always marshal
	}
	return maphash.Bytes(seed, text)
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

// undated returns the conditions without their transition times.
func undated(conditions []metav1.Condition) []metav1.Condition {
	result := make([]metav1.Condition, len(conditions))
	for i, condition := range conditions {
		condition.LastTransitionTime = metav1.Time{}
		result[i] = condition
	}
	return result
}
