// SPDX-License-Identifier: Apache-2.0

package member

import (
	"cmp"
	"maps"
	"slices"
)

// roster is the members at a time. It is immutable.
type roster struct {
	byID   map[string]*Member
	sorted []*Member
}

func newRoster(members map[string]*Member) *roster {
	return &roster{byID: members, sorted: slices.SortedFunc(maps.Values(members), func(a, b *Member) int {
		return cmp.Compare(a.cluster, b.cluster)
	})}
}
