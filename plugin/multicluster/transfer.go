// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"errors"
	"slices"

	"github.com/coredns/coredns/plugin/transfer"
	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/name"
)

var errNotSynced = errors.New("the zone cannot be transferred before all its objects were listed")

// Transfer implements transfer.Transferer. It walks a snapshot, so that what is sent is of one moment. IXFR is answered
// in full, or with the SOA where the client's serial is the present one or a newer (RFC 1995, section 2).
func (m *Multicluster) Transfer(zone string, serial uint32) (<-chan []dns.RR, error) {
	number := -1
	for i, z := range slices.Concat(m.Zones, m.Reverse) {
		if below, ok := name.Cut(zone, z); ok && below == "" {
			number = i
		}
	}
	if number < 0 {
		return nil, transfer.ErrNotAuthoritative
	}
	snapshot := m.snapshot()
	if snapshot == nil {
		return nil, errNotSynced
	}
	soa := snapshot.SOA(number)
	records := make(chan []dns.RR)
	go func() {
		defer close(records)
		records <- soa
		if serial != 0 && int32(snapshot.Serial()-serial) <= 0 {
			return
		}
		records <- m.apexes[number].records()
		walk := snapshot.Walk
		if number >= len(m.Zones) {
			walk = snapshot.WalkReverse
		}
		walk(number, func(some []dns.RR) bool {
			records <- some
			return true
		})
		records <- soa
	}()
	return records, nil
}
