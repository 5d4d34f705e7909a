// SPDX-License-Identifier: Apache-2.0

// Package vouch decides whether the heartbeat of the local cluster may be
// renewed: whether the EndpointSlices that the cluster publishes are kept true
// (docs/design/heartbeat.md), and whether the process that keeps them is stuck.
package vouch

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// A Reason says why the heartbeat is not renewed. It is a value of the label
// reason of a metric.
type Reason string

// Reasons.
const (
	// None: the slices are kept true.
	None Reason = ""
	// Inputs: objects that the exports depend on are not read.
	Inputs Reason = "inputs"
	// Workers: no service is reconciled although some are due.
	Workers Reason = "workers"
	// Writes: slices cannot be written, for a reason that concerns the whole
	// cluster.
	Writes Reason = "writes"
)

// Reasons are all but None.
var Reasons = []Reason{Inputs, Workers, Writes}

// Config is what a Record is made from.
type Config struct {
	Clock clock.PassiveClock
	// After is how long a fault may last before the heartbeat stops.
	After time.Duration
	// Inputs returns the name of a resource that exports depend on and that was
	// not read for at least so long; empty if there is none.
	Inputs func(time.Duration) string
	// Probe tries to write a slice where no tenant can make that fail.
	Probe func(context.Context) error
}

// A Record keeps how the slices of the local cluster fare during one term of a
// leader. It is safe for concurrent use.
type Record struct {
	config Config

	mu sync.Mutex
	// unseen are the services that were not reconciled in this term yet.
	unseen map[types.NamespacedName]struct{}
	seen   chan struct{}
	// late are the services whose own slices are not as they should be, and
	// since when.
	late map[types.NamespacedName]time.Time
	// working is how many services are reconciled now, and progress when the
	// last one of them began or ended.
	working  int
	progress time.Time
	// beat is when the loop of the heartbeat was last seen to run, and ended
	// when the term ended; zero before.
	beat, ended time.Time
	reason      Reason
}

// New returns a record of a term that begins. expected are the services that
// the cluster exports, or has slices for. The record takes them over.
func New(config Config, expected map[types.NamespacedName]struct{}) *Record {
	r := &Record{config: config, unseen: expected, seen: make(chan struct{}), late: map[types.NamespacedName]time.Time{}}
	if len(expected) == 0 {
		close(r.seen)
	}
	return r
}

// Seen is closed once each of the expected services was reconciled in this
// term. Before that nobody knows whether the slices are true.
func (r *Record) Seen() <-chan struct{} { return r.seen }

// Begins notes that a service is reconciled.
func (r *Record) Begins() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.working == 0 {
		r.progress = r.config.Clock.Now()
	}
	r.working++
}

// Ends notes that a service was reconciled. err says why its own slices are not
// as they should be.
func (r *Record) Ends(service types.NamespacedName, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress = r.config.Clock.Now()
	r.working--
	if _, unseen := r.unseen[service]; unseen {
		if delete(r.unseen, service); len(r.unseen) == 0 {
			close(r.seen)
		}
	}
	_, known := r.late[service]
	switch {
	case err == nil:
		delete(r.late, service)
	case !known:
		r.late[service] = r.progress
	}
}

// Doubt returns why the heartbeat may not be renewed now, None if it may, and a
// message for an administrator. It sends a request if some service is late.
func (r *Record) Doubt(ctx context.Context) (Reason, string) {
	reason, message := r.doubt(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reason = reason
	return reason, message
}

func (r *Record) doubt(ctx context.Context) (Reason, string) {
	r.mu.Lock()
	stopped := r.stopped(r.config.After)
	var late types.NamespacedName
	for service, since := range r.late {
		if r.config.Clock.Since(since) >= r.config.After {
			late = service
			break
		}
	}
	r.mu.Unlock()

	if resource := r.config.Inputs(r.config.After); resource != "" {
		return Inputs, fmt.Sprintf("%s of this cluster could not be read for %s. Look at the API server and at the rights of the controller", resource, r.config.After)
	}
	switch {
	case stopped:
		return Workers, fmt.Sprintf("no service was reconciled for %s although some are due. Look at the API server and at its admission webhooks", r.config.After)
	case late.Name == "":
		return None, ""
	}
	// One namespace, with its quota or its webhooks, must not take the whole
	// cluster down: the reason has to hold elsewhere, too.
	if err := r.config.Probe(ctx); err != nil {
		return Writes, fmt.Sprintf("EndpointSlices cannot be written, those of service %s for %s: %v. Look at the rights of the controller and at the admission webhooks for EndpointSlices", late, r.config.After, err)
	}
	return None, ""
}

// Reason returns what Doubt returned last.
func (r *Record) Reason() Reason {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reason
}

// Late returns the services whose own slices are not as they should be, in no
// order.
func (r *Record) Late() []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	late := make([]types.NamespacedName, 0, len(r.late))
	for service := range r.late {
		late = append(late, service)
	}
	return late
}

// Beats notes that the loop of the heartbeat runs, whether it renews or not.
func (r *Record) Beats() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beat = r.config.Clock.Now()
}

// TermEnds notes that all work has to stop.
func (r *Record) TermEnds() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = r.config.Clock.Now()
}

// Stuck returns what has made no progress for so long, so that only a new
// process helps; empty if nothing has.
func (r *Record) Stuck(longer time.Duration) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.config.Clock.Now()
	switch {
	case !r.ended.IsZero() && now.Sub(r.ended) >= longer:
		return fmt.Sprintf("the work has not stopped %s after this replica lost the leader Lease", longer)
	case !r.ended.IsZero():
		return ""
	case r.stopped(longer):
		return fmt.Sprintf("no service was reconciled for %s although some are due", longer)
	case !r.beat.IsZero() && now.Sub(r.beat) >= longer:
		return fmt.Sprintf("the heartbeat was not looked after for %s", longer)
	}
	return ""
}

// stopped tells whether no service was reconciled for so long although some are
// due. The lock is held.
func (r *Record) stopped(longer time.Duration) bool {
	return r.working > 0 && r.config.Clock.Since(r.progress) >= longer
}
