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

// An Encoder encodes the snapshots of one view's slices.
type Encoder struct {
	view *View
	// service is the part that the snapshots of all slices have in common; nil for an absent view.
	service json.RawMessage
}

// NewEncoder returns an Encoder for a view.
func NewEncoder(view *View) *Encoder {
	e := &Encoder{view: view}
	if !view.Absent() {
		e.service = encodeService(view.Spec)
	}
	return e
}

// Annotations returns the annotations of a published slice or its copy in a new map: the snapshot and the trigger time.
// demoted are the ascending indices of endpoints that a merge demotes; they are ready in the view.
func (e *Encoder) Annotations(slice *Slice, demoted []int) map[string]string {
	annotations := map[string]string{AnnotationSnapshot: e.encode(slice, demotions(slice, demoted))}
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

// readSnapshot decodes the snapshot in the annotations of a slice. The reason is set with the error.
func readSnapshot(annotations map[string]string) (snapshot, Reason, error) {
	text, found := annotations[AnnotationSnapshot]
	if !found {
		for _, key := range slices.Sorted(maps.Keys(annotations)) {
			if version, found := strings.CutPrefix(key, AnnotationSnapshotPrefix); found {
				return snapshot{}, ReasonUnknownVersion,
					fmt.Errorf("its snapshot is of unknown version %.100q; upgrade this controller", version)
			}
		}
		return snapshot{}, ReasonNoSnapshot, fmt.Errorf("it has no snapshot")
	}
	if len(text) > maxSnapshot {
		return snapshot{}, ReasonTooLarge, fmt.Errorf("its snapshot has %d bytes; the limit is %d", len(text), maxSnapshot)
	}
	decoded, err := decode(text)
	if err != nil {
		return snapshot{}, ReasonBadSnapshot, fmt.Errorf("its snapshot does not parse: %w", err)
	}
	return decoded, "", nil
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
