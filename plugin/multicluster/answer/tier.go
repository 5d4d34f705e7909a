// SPDX-License-Identifier: Apache-2.0

package answer

import (
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
	answer, _ := b.addresses(size)
	return answer
}

// takeByTier takes records up to the limit and up to what fits, the nearest first.
func (s *serviceList) takeByTier(limit int, spread bool) {
	all := s.numbers
	defer func() { s.numbers = all }()
	for tier := range uint16(topology.Tiers) {
		n := 0
		s.numbers = slices.Clone(all)
		for i := range all {
			if s.tiers[i] != tier {
				s.numbers[i] = nil
			}
			n += s.service.Blocks[i].Len() * len(s.numbers[i])
		}
		if n > 0 && !s.take(min(n, limit-len(s.picks)), n, spread) {
			return
		}
	}
}
