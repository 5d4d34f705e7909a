// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A version is one generation of the snapshot's format.
type version struct {
	// name follows AnnotationSnapshotPrefix in the annotation's key.
	name string
	// encoder prepares what all slices of a view have in common; the function
	// that it returns encodes one slice.
	encoder func(*View) func(*Slice, []demotion) string
	// decode reads what encoder wrote, and checks no more than the syntax.
	decode func(string) (snapshot, error)
}

// versions are those that this program writes and reads, the newest first. A
// reader takes the first that a slice has.
var versions = []version{version1}

// A snapshot is what a slice says of its export, syntactically right and
// otherwise unchecked.
type snapshot struct {
	cluster string
	// absent tells that the Service of the export does not exist: see
	// View.Absent. There is no spec then.
	absent bool
	// spec is decoded when it is asked for: one slice speaks for all.
	spec    func() (Spec, error)
	name    string
	targets []Target
	demoted []demotion
}

// A demotion is a group of endpoints of a slice that were ready before a merge
// changed their conditions, and that had the other two conditions in common.
type demotion struct {
	endpoints            []int
	serving, terminating bool
}

// An Encoder writes the snapshots of one view's slices. It may be used by one
// goroutine at a time.
type Encoder struct {
	encode map[string]func(*Slice, []demotion) string
}

// NewEncoder prepares what all slices of the view have in common.
func NewEncoder(view *View) *Encoder { return newEncoder(view, versions) }

func newEncoder(view *View, versions []version) *Encoder {
	e := &Encoder{encode: make(map[string]func(*Slice, []demotion) string, len(versions))}
	for _, v := range versions {
		e.encode[AnnotationSnapshotPrefix+v.name] = v.encoder(view)
	}
	return e
}

// Annotations are those that the published slice or the copy of a slice of the
// view carries: the snapshot in every version that is written, and the trigger
// time. demoted are the indices of the endpoints whose conditions a merge
// changes, in ascending order; they are ready in the view. The map is new.
func (e *Encoder) Annotations(slice *Slice, demoted []int) map[string]string {
	groups := demotions(slice, demoted)
	annotations := make(map[string]string, len(e.encode)+1)
	for key, encode := range e.encode {
		annotations[key] = encode(slice, groups)
	}
	if slice.TriggerTime != "" {
		annotations[AnnotationTriggerTime] = slice.TriggerTime
	}
	return annotations
}

func demotions(slice *Slice, demoted []int) []demotion {
	var groups []demotion
	for _, i := range demoted {
		conditions := slice.Endpoints[i].Conditions
		serving, terminating := isTrue(conditions.Serving, true), isTrue(conditions.Terminating, false)
		at := slices.IndexFunc(groups, func(g demotion) bool {
			return g.serving == serving &&
				g.terminating == terminating
		})
		if at < 0 {
			at = len(groups)
			groups = append(groups, demotion{serving: serving, terminating: terminating})
		}
		groups[at].endpoints = append(groups[at].endpoints, i)
	}
	return groups
}

// maxSnapshot bounds the text of one snapshot in bytes: the API server's limit
// for all annotations of an object.
const maxSnapshot = 256 << 10

// readSnapshot decodes the newest known version among the annotations of a
// slice. On failure the reason is set.
func readSnapshot(annotations map[string]string, versions []version) (snapshot, Reason, error) {
	for _, v := range versions {
		text, found := annotations[AnnotationSnapshotPrefix+v.name]
		if !found {
			continue
		}
		if len(text) > maxSnapshot {
			return snapshot{}, ReasonTooLarge, fmt.Errorf("its snapshot has %d bytes; the limit is %d", len(text),
				maxSnapshot)
		}
		decoded, err := v.decode(text)
		if err != nil {
			return snapshot{}, ReasonBadSnapshot, fmt.Errorf("its snapshot in version %s does not parse: %w", v.name,
				err)
		}
		return decoded, "", nil
	}
	var unknown []string
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if name, found := strings.CutPrefix(key, AnnotationSnapshotPrefix); found {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return snapshot{}, ReasonUnknownVersion,
			fmt.Errorf("its snapshot is of unknown version %q; upgrade this controller", strings.Join(unknown, ", "))
	}
	return snapshot{}, ReasonNoSnapshot, fmt.Errorf("it has no snapshot")
}

// marshal is the compact JSON of a value that can always be marshalled, with
// no escapes that only HTML needs.
func marshal(value any) []byte {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(fmt.Sprintf("export: %T cannot be marshalled: %v", value, err))
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))
}
