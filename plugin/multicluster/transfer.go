// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"errors"
	"slices"
	"strings"

	"github.com/coredns/coredns/plugin/transfer"
	"github.com/miekg/dns"
)

var errNotSynced = errors.New("the zone cannot be transferred before all its objects were listed")

// Transfer implements transfer.Transferer. It walks a snapshot, so that what is sent is of one moment. IXFR is answered
// in full, or with the SOA where the client's serial is the present one or a newer (RFC 1995, section 2).
func (m *Multicluster) Transfer(zone string, serial uint32) (<-chan []dns.RR, error) {
	number := slices.Index(m.Zones, strings.ToLower(zone))
	if number < 0 {
		return nil, transfer.ErrNotAuthoritative
	}
	active := m.active()
	number = slices.Index(active.Zones, strings.ToLower(zone))
	if number < 0 || active.state() == nil {
		return nil, errNotSynced
	}
	state, all := active.index.Load().Snapshot(number)
	records := make(chan []dns.RR)
	go func() {
		defer close(records)
		records <- state.SOA(number)
		if serial != 0 && int32(state.Serial-serial) <= 0 {
			return
		}
		records <- active.apexes[number].Records()
		for some := range all {
			records <- some
		}
		records <- state.SOA(number)
	}()
	return records, nil
}
