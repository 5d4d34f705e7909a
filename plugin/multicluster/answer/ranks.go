// SPDX-License-Identifier: Apache-2.0

package answer

import "slices"

// ranks finds the block of a record by its number. It has the number of records in each block and those before it.
type ranks []int

// fewBlocks is how many blocks most services have at most.
const fewBlocks = 16

// newRanks has room for so many blocks: in the buffer if it suffices.
func newRanks(buffer []int, blocks int) ranks {
	if blocks <= cap(buffer) {
		return buffer[:0]
	}
	return make(ranks, 0, blocks)
}

// add adds a block with so many records.
func (r *ranks) add(records int) { *r = append(*r, r.len()+records) }

// len is the number of records.
func (r ranks) len() int {
	if len(r) == 0 {
		return 0
	}
	return r[len(r)-1]
}

// find returns the block of the record with the number at, and the number of the record in its block.
func (r ranks) find(at int) (block, in int) {
	block, _ = slices.BinarySearch(r, at+1)
	if block > 0 {
		at -= r[block-1]
	}
	return block, at
}
