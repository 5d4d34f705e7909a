// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// A Source proposes members, in addition to Secrets with ClusterLabel.
type Source interface {
	// String names the source, as the operator configured it.
	String() string
	// List returns all candidates, in the same order if they are the same. After an error, the candidates of the previous list
	// stay.
	List(context.Context) ([]*Candidate, error)
}

// errVanished is the error for the first empty list of a source that had members.
var errVanished = errors.New("all of its members are gone at once: they leave if the next list is empty, too")

// A polled source is a Source with its known candidates. A source that cannot be listed removes no member: the candidates of
// its last list stay or, before its first list, the candidates of the previous leader.
type polled struct {
	source Source
	// known are the candidates of the last list or, until the first list, of the previous leader.
	known []*Candidate
	empty bool // the last list was empty
	err   error
}

// newSources returns the sources with the candidates that the previous leader had.
func newSources(sources []Source, left []*Candidate) (all []*polled) {
	for _, source := range sources {
		all = append(all, &polled{source: source, known: slices.DeleteFunc(slices.Clone(left), func(c *Candidate) bool {
			return c.Source != source.String()
		})})
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

// take stores the result of a list, and reports whether the candidates changed.
func (r *polled) take(list []*Candidate, err error) (changed bool) {
	empty := err == nil && len(list) == 0
	if empty && !r.empty && len(r.known) > 0 {
		err = errVanished // before a CustomResourceDefinition is deleted, all its objects are
	}
	if r.empty, r.err = empty, err; err != nil {
		return false
	}
	for _, candidate := range list {
		candidate.Source = r.source.String()
	}
	changed = !reflect.DeepEqual(list, r.known)
	r.known = list
	return changed
}
