// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/klog/v2"
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
	err   error // of the last list
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
		if err == nil && len(list) == 0 && len(r.known) > 0 && !errors.Is(r.err, errVanished) {
			err = errVanished // before a CustomResourceDefinition is deleted, all its objects are
		}
		before := r.err
		if r.err = err; err != nil {
			if fmt.Sprint(before) != err.Error() {
				klog.FromContext(ctx).Error(err, "Cannot read a source of members; its members stay", "source", r.source.String())
			}
			continue
		}
		for _, candidate := range list {
			candidate.Source = r.source.String()
		}
		changed = changed || !reflect.DeepEqual(list, r.known)
		r.known = list
	}
	return changed
}
