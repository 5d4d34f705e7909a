// SPDX-License-Identifier: Apache-2.0

package export

// An Encoder writes the snapshots of one view's slices.
type Encoder struct {
	view *View
}

// NewEncoder prepares what all slices of the view have in common.
func NewEncoder(view *View) *Encoder {
	return &Encoder{view: view}
}

// Annotations are those that the published slice or the copy of a slice of the
// view carries: the snapshot in every version that is written, and the trigger
// time. demoted are the indices of the endpoints whose conditions a merge
// changes, in ascending order. The map is new.
func (e *Encoder) Annotations(slice *Slice, demoted []int) map[string]string {
	return nil
}
