// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"fmt"
	"reflect"
)

// A Source proposes members, besides flags and Secrets with ClusterLabel.
type Source interface {
	// String names the source, as the operator configured it.
	String() string
	// List returns all candidates, in the same order if they are the same. An error means that they are not known: those of
	// before stay.
	List(context.Context) ([]*Candidate, error)
}

// errVanished is the error of a list that is empty, other than the one before.
var errVanished = errors.New("all of its members are gone at once: they leave if the next list is empty, too")

// A polled source is what is known of a source. Losing the source removes no member: its last list stays, or the members
// that the previous leader had of it.
type polled struct {
	source Source
	// known are the candidates of the last list or, until the first one, those that the previous leader had.
	known  []*Candidate
	listed bool
	empty  bool // the last list was
	err    error
}

// newSources returns the sources with the members that the previous leader left.
func newSources(sources []Source, left []*Candidate) (all []*polled) {
	for _, source := range sources {
		r := &polled{source: source}
		for _, candidate := range left {
			if candidate.Source == source.String() {
				r.known = append(r.known, candidate)
			}
		}
		all = append(all, r)
	}
	return all
}

// readSources lists all sources, and reports whether the candidates changed.
func (s *Members) readSources(ctx context.Context) (changed bool) {
	for _, r := range s.sources {
		limited, cancel := context.WithTimeout(ctx, sourcePatience)
		list, err := r.source.List(limited)
		cancel()
		if ctx.Err() != nil {
			return false
		}
		before := r.err
		changed = r.take(list, err) || changed
		if r.err != nil && fmt.Sprint(before) != fmt.Sprint(r.err) {
			s.config.Report(Problem{Source: r.source.String(), Err: r.err})
		}
	}
	return changed
}

// take takes over the result of a list, and reports whether the candidates changed.
func (r *polled) take(list []*Candidate, err error) (changed bool) {
	empty := err == nil && len(list) == 0
	if empty && !r.empty && len(r.known) > 0 {
		err = errVanished // the objects of a CustomResourceDefinition that is deleted go first
	}
	r.empty, r.err = empty, err
	switch {
	case err == nil:
		r.listed = true
		for _, candidate := range list {
			candidate.Source = r.source.String()
		}
	case r.listed:
		return false
	default:
		list = nil
		for _, candidate := range r.known { // whose credentials the previous leader did not leave
			without := *candidate
			without.Err = fmt.Errorf("its credential is not known, because --members-from=%s was not read since the controller started: %w",
				r.source, err)
			list = append(list, &without)
		}
	}
	changed = !reflect.DeepEqual(list, r.known)
	r.known = list
	return changed
}
