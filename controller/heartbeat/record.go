// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// A Reason is why the heartbeat is not renewed, and a value of the label reason of a metric.
type Reason string

// Reasons.
const (
	// None: the heartbeat is renewed.
	None Reason = ""
	// InputsLate: objects that exports depend on cannot be read.
	InputsLate Reason = "inputs"
	// WritesFail: EndpointSlices cannot be written in any namespace.
	WritesFail Reason = "writes"
)

// Reasons are all but None.
var Reasons = []Reason{InputsLate, WritesFail}

// RecordConfig is what a Record is made from.
type RecordConfig struct {
	Clock clock.PassiveClock
	// After is how long a fault may last before the heartbeat stops.
	After time.Duration
	// Late returns the name of a resource that exports depend on, and that could not be read for at least so long or is not
	// served; empty if there is none.
	Late func(longer time.Duration) string
	// Probe writes an EndpointSlice where no tenant can make that fail.
	Probe func(ctx context.Context) error
}

// A Record decides while this replica leads whether the heartbeat may be renewed: whether the EndpointSlices that
// the local cluster publishes are kept up to date (docs/design.md, "Heartbeat"). The Reconciler ends a
// reconcile that hangs, and records it as failed. It is safe for concurrent use.
type Record struct {
	config RecordConfig

	mu sync.Mutex
	// unseen are the services that were not yet reconciled.
	unseen map[types.NamespacedName]struct{}
	seen   chan struct{}
	// late are the services whose published slices are out of date, and since when.
	late    map[types.NamespacedName]time.Time
	reason  Reason
	message string
}

// NewRecord returns the record of a new leader. expected are the services that the cluster exports or publishes slices
// for. The record owns the map.
func NewRecord(config RecordConfig, expected map[types.NamespacedName]struct{}) *Record {
	r := &Record{
		config: config, unseen: expected, seen: make(chan struct{}),
		late: map[types.NamespacedName]time.Time{},
	}
	if len(expected) == 0 {
		close(r.seen)
	}
	return r
}

// Seen is closed once each expected service was reconciled. Before that it is unknown whether the
// published slices are up to date.
func (r *Record) Seen() <-chan struct{} { return r.seen }

// Reconciled notes that a service was reconciled. err is why its published slices are out of date, nil if they are not.
func (r *Record) Reconciled(service types.NamespacedName, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
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
		r.late[service] = r.config.Clock.Now()
	}
}

// Doubt returns why the heartbeat may not be renewed now, or None, and a message for an administrator. It calls the
// Probe if a service is late.
func (r *Record) Doubt(ctx context.Context) (Reason, string) {
	reason, message := r.doubt(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reason, r.message = reason, message
	return reason, message
}

func (r *Record) doubt(ctx context.Context) (Reason, string) {
	r.mu.Lock()
	var late types.NamespacedName
	for service, since := range r.late {
		if r.config.Clock.Since(since) >= r.config.After {
			late = service
			break
		}
	}
	r.mu.Unlock()

	if resource := r.config.Late(r.config.After); resource != "" {
		return InputsLate, fmt.Sprintf("%s of this cluster cannot be read. Check the API server, the "+
			"CustomResourceDefinitions of the MCS API, and the rights of the controller", resource)
	}
	if late.Name == "" {
		return None, ""
	}
	// The quota or the webhooks of one namespace must not stop the heartbeat of the whole cluster: writes have to fail
	// elsewhere too.
	if err := r.config.Probe(ctx); err != nil {
		return WritesFail, fmt.Sprintf(
			"EndpointSlices cannot be written, those of service %s for %s: %v. Look at the rights "+
				"of the controller and at the admission webhooks for EndpointSlices", late, r.config.After, err)
	}
	return None, ""
}

// Doubted returns what Doubt returned last.
func (r *Record) Doubted() (Reason, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reason, r.message
}

// Unpublished returns the services whose published slices are out of date, in no order.
func (r *Record) Unpublished() []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	late := make([]types.NamespacedName, 0, len(r.late))
	for service := range r.late {
		late = append(late, service)
	}
	return late
}
