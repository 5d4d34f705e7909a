// SPDX-License-Identifier: Apache-2.0

package record

// Reason says why an object, or a part of it, has no record. It is the value of a metric label.
type Reason string

const (
	// Bookkeeping is an import that another implementation keeps for itself.
	Bookkeeping Reason = "bookkeeping"
	// Undecodable is an import that cannot be decoded.
	Undecodable Reason = "undecodable"
	// InvalidName is an import whose name or namespace is not a DNS label.
	InvalidName Reason = "invalid_name"
	// InvalidIP is an entry of spec.ips that is not the address of a service.
	InvalidIP Reason = "invalid_ip"
	// InvalidPort is a port with a name, protocol or number that no record can hold.
	InvalidPort Reason = "invalid_port"
	// InvalidAddressType is a slice whose endpoints are not IP addresses.
	InvalidAddressType Reason = "invalid_address_type"
	// InvalidSourceCluster is a slice whose label is not a valid cluster id. Its endpoints have no host name. Slices
	// that Kubernetes mirrors have no such label and are not counted.
	InvalidSourceCluster Reason = "invalid_source_cluster"
	// NameTooLong is a record with a name that would exceed 253 octets.
	NameTooLong Reason = "name_too_long"
)

// Skips counts what was left out, by reason. Nil is empty.
type Skips map[Reason]int

// Add adds n to the count of a reason.
func (s *Skips) Add(reason Reason, n int) {
	if *s == nil {
		*s = make(Skips)
	}
	(*s)[reason] += n
}

// AddAll adds the counts of more.
func (s *Skips) AddAll(more Skips) {
	for reason, n := range more {
		s.Add(reason, n)
	}
}
