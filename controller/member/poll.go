// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"k8s.io/klog/v2"
)

// A Source proposes members, besides flags and Secrets with ClusterLabel.
type Source interface {
	// String names the source, as the operator configured it.
	String() string
	// List returns all candidates. An error means that they are not known: those of before stay. It is called from one
	// goroutine at a time.
	List(context.Context) ([]*Candidate, error)
}

// errVanished is the error of a list that is empty, other than the one before.
var errVanished = errors.New("all of its members are gone at once: they leave if the next list is empty, too")

// A polled source is what is known of a source. Losing the source removes no member: its last list stays, or the members
// that the previous leader had of it.
type polled struct {
	source Source

	mu    sync.Mutex
	known []*Candidate
	// before is true until the source is listed for the first time: known are those that the previous leader had.
	before bool
	empty  bool // the last list was
	err    error
}

// readSources lists all sources for the first time, and then again and again until the context ends, in goroutines of
// the group. left are the members that the previous leader left.
func (s *Members) readSources(ctx context.Context, group *sync.WaitGroup, left []*Candidate) {
	if len(s.config.Sources) == 0 {
		return
	}
	before := map[string][]*Candidate{}
	for _, candidate := range left {
		before[candidate.Source] = append(before[candidate.Source], candidate)
	}
	var first sync.WaitGroup
	for _, source := range s.config.Sources {
		r := &polled{source: source, before: true, known: before[source.String()]}
		s.sources = append(s.sources, r)
		first.Go(func() { s.readSource(ctx, r) })
	}
	first.Wait()
	for _, r := range s.sources {
		ticker := s.config.Clock.NewTicker(sourceInterval)
		group.Go(func() {
			defer ticker.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-ticker.C():
				}
				if s.readSource(ctx, r) {
					s.Refresh()
				}
			}
		})
	}
}

// readSource lists a source, and reports whether the candidates changed.
func (s *Members) readSource(ctx context.Context, r *polled) (changed bool) {
	limited, cancel := context.WithTimeout(ctx, sourcePatience)
	defer cancel()
	list, err := r.source.List(limited)
	if ctx.Err() != nil {
		return false
	}
	was := r.err
	changed = r.take(list, err)
	switch {
	case r.err == nil && was != nil:
		s.config.Reporter.Report(Problem{Source: r.source.String()})
	case r.err != nil && (was == nil || was.Error() != r.err.Error()):
		s.config.Reporter.Report(Problem{Source: r.source.String(), Err: r.err})
	}
	if changed {
		klog.FromContext(ctx).V(2).Info("A source of members changed", "source", r.source.String(), "candidates", len(list))
	}
	return changed
}

// take takes over the result of a list, and reports whether the candidates changed.
func (r *polled) take(list []*Candidate, err error) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	vanished := err == nil && len(list) == 0 && len(r.known) > 0 && !r.empty
	r.empty = err == nil && len(list) == 0
	if vanished {
		// The objects of a CustomResourceDefinition that is deleted go first.
		err = errVanished
	}
	if r.err = err; err != nil {
		if !r.before {
			return false
		}
		// The previous leader's members have no credential until the source is read.
		for i, candidate := range r.known {
			if candidate.Err != nil && candidate.Err.Error() == unread(r.source, err).Error() {
				continue
			}
			without := *candidate
			without.Err = unread(r.source, err)
			r.known[i] = &without
			changed = true
		}
		return changed
	}
	r.before = false
	last := make(map[string]*Candidate, len(r.known))
	for _, candidate := range r.known {
		last[candidate.key()] = candidate
	}
	changed = len(list) != len(r.known)
	for i, candidate := range list {
		candidate.Source = r.source.String()
		if same := last[candidate.key()]; same != nil && same.equals(candidate) {
			list[i] = same
			continue
		}
		changed = true
	}
	r.known = list
	return changed
}

func unread(source Source, err error) error {
	return fmt.Errorf("its credential is not known, because --members-from=%s was not read since the controller started: %w",
		source, err)
}

// equals reports whether two candidates with the same key mean the same.
func (c *Candidate) equals(other *Candidate) bool {
	a, b := *c, *other
	a.Object, b.Object = nil, nil
	if a.Err != nil && b.Err != nil && a.Err.Error() == b.Err.Error() {
		a.Err, b.Err = nil, nil
	}
	return reflect.DeepEqual(a, b)
}

// proposed returns the candidates of all sources.
func (s *Members) proposed() (all []*Candidate) {
	for _, r := range s.sources {
		r.mu.Lock()
		all = append(all, r.known...)
		r.mu.Unlock()
	}
	return all
}
