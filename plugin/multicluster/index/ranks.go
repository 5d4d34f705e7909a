// SPDX-License-Identifier: Apache-2.0

package index

import "slices"

// ranks finds the run of a record by the record's number: it holds for each run how many records it and those before it
// have.
type ranks []int

// fewRuns is how many runs most services have at most.
const fewRuns = 16

// newRanks has room for so many runs. It takes that of the buffer if it suffices.
func newRanks(buffer []int, runs int) ranks {
	if runs <= cap(buffer) {
		return buffer[:0]
	}
	return make(ranks, 0, runs)
}

// add adds the next run, which has so many records.
func (r *ranks) add(records int) { *r = append(*r, r.len()+records) }

// len is the number of records.
func (r ranks) len() int {
	if len(r) == 0 {
		return 0
	}
	return r[len(r)-1]
}

// find returns the run of the record with the number at, which is less than len, and the number of the record in its run.
func (r ranks) find(at int) (run, in int) {
	run, _ = slices.BinarySearch(r, at+1)
	if run > 0 {
		at -= r[run-1]
	}
	return run, at
}
