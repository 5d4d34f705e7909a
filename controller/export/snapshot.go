// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/clusterset-dns/clusterset-dns/controller/selector"
)

// A version is a version of the snapshot's format.
type version struct {
	// name is the suffix of the annotation's key, after AnnotationSnapshotPrefix.
	name string
	// encoder encodes the common part of a view's snapshots. The function that it returns encodes one slice.
	encoder func(*View) func(*Slice, []demotion) string
	// writes reports whether the version is written for a slice.
	writes func(*Slice) bool
	// decode is the inverse of encoder. It checks only the syntax.
	decode func(string) (snapshot, error)
}

// versions are the versions that this program writes and reads, newest first. A reader uses the first that a slice has.
var versions = []version{version2, version1}

// A snapshot is a slice's part of an export, with valid syntax and otherwise unchecked.
type snapshot struct {
	cluster string
	// absent is set for an export without its Service, which has no spec: see View.Absent.
	absent bool
	// clusters is the zero Selector for a slice that is for all clusters.
	clusters selector.Selector
	// spec is decoded on demand, because only one slice's is used. specText is its encoded form.
	spec     func() (Spec, error)
	specText []byte
	name     string
	targets  []Target
	demoted  []demotion
}

// A demotion is a group of endpoints of a slice that were ready before a merge
// changed their conditions, and that had the other two conditions in common.
type demotion struct {
	endpoints            []int
	serving, terminating bool
}

// An Encoder encodes the snapshots of one view's slices. It is not safe for concurrent use.
type Encoder struct {
	encode map[string]encoding
}

// An encoding is the encoder of a version for one view.
type encoding struct {
	of     func(*Slice, []demotion) string
	writes func(*Slice) bool
}

// NewEncoder returns an Encoder for a view.
func NewEncoder(view *View) *Encoder { return newEncoder(view, versions) }

func newEncoder(view *View, versions []version) *Encoder {
	e := &Encoder{encode: make(map[string]encoding, len(versions))}
	for _, v := range versions {
		e.encode[AnnotationSnapshotPrefix+v.name] = encoding{v.encoder(view), v.writes}
	}
	return e
}

// Annotations returns the annotations of a published slice or its copy in a new map: the snapshot in each version that
// is written for it, and the trigger time. demoted are the ascending indices of endpoints that a merge demotes; they are ready in the view.
func (e *Encoder) Annotations(slice *Slice, demoted []int) map[string]string {
	groups := demotions(slice, demoted)
	annotations := make(map[string]string, len(e.encode)+1)
	for key, encode := range e.encode {
		if encode.writes == nil || encode.writes(slice) {
			annotations[key] = encode.of(slice, groups)
		}
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

// maxSnapshot bounds one snapshot in bytes, to the API server's limit for all annotations of an object.
const maxSnapshot = 256 << 10

// readSnapshot decodes the newest known version in the annotations of a slice. The reason is set with the error.
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
		if name, found := strings.CutPrefix(key, AnnotationSnapshotPrefix); found && key != AnnotationSRV {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return snapshot{}, ReasonUnknownVersion,
			fmt.Errorf("its snapshot is of unknown version %q; upgrade this controller", strings.Join(unknown, ", "))
	}
	return snapshot{}, ReasonNoSnapshot, fmt.Errorf("it has no snapshot")
}

// marshal returns compact JSON without HTML escapes. The value must always marshal.
func marshal(value any) []byte {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(fmt.Sprintf("export: %T cannot be marshalled: %v", value, err))
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))
}
