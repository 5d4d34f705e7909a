// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"cmp"
	"math"
	"slices"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/topology"
)

// tiers are those of the blocks for a client there, or nil if no endpoint comes before another.
func (s headless) tiers(q *Question, place topology.Place) []uint16 {
	prefer := s.Import.Prefer
	if prefer == topology.PreferDefault {
		prefer = q.Prefer
	}
	if prefer <= topology.PreferNone || !place.Known() {
		return nil
	}
	tiers := make([]uint16, len(s.Blocks))
	for i := range s.Blocks {
		tiers[i] = place.Tier(prefer, s.Blocks[i].Cluster, s.Blocks[i].Zone)
	}
	return tiers
}

// priorities are those of the SRV records of the blocks, nil if all are 0. Those of the endpoints themselves come first,
// and then the tiers of a client, which may be nil.
func (s headless) priorities(tiers []uint16) []uint16 {
	var priorities []uint16
	for i := range s.Blocks {
		priority := uint16(s.Blocks[i].Priority)
		switch {
		case priority == 0:
			continue
		case priorities == nil && tiers == nil:
			priorities = make([]uint16, len(s.Blocks))
		case priorities == nil:
			priorities = slices.Clone(tiers)
		}
		if tiers == nil {
			priorities[i] = priority
		} else {
			priorities[i] += priority * topology.Tiers
		}
	}
	if priorities == nil {
		return tiers
	}
	return priorities
}

// nearest is addresses with those of the nearest tier that has some of the family. A client with one family gets
// addresses also if those of the other one are nearer.
func (b answerBuilder) nearest(size uint8, tiers []uint16) Answer {
	blocks := b.service.Blocks
	near := uint16(math.MaxUint16)
	for i := range blocks {
		if blocks[i].InService && blocks[i].Size == size {
			near = min(near, tiers[i])
		}
	}
	service := &record.Service{Import: b.service.Import}
	for i := range blocks {
		if tiers[i] == near && blocks[i].InService && blocks[i].Size == size {
			service.Blocks = append(service.Blocks, blocks[i])
		}
	}
	b.service = service
	return b.addresses(size)
}

// takeByPriority takes records up to the limit and up to what fits, those that come first before others.
func (s *serviceList) takeByPriority(limit int, spread bool) {
	order := make([]int32, 0, len(s.numbers))
	for i, numbers := range s.numbers {
		if len(numbers) > 0 {
			order = append(order, int32(i))
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(s.priorities[a], s.priorities[b]) })
	for len(order) > 0 {
		count, n := 0, 0 // of the blocks with the same priority, and of their records
		for ; count < len(order) && s.priorities[order[count]] == s.priorities[order[0]]; count++ {
			n += s.service.Blocks[order[count]].Len() * len(s.numbers[order[count]])
		}
		if !s.take(order[:count], min(n, limit-len(s.picks)), n, spread) {
			return
		}
		order = order[count:]
	}
}
