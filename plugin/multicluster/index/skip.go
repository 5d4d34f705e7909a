// SPDX-License-Identifier: Apache-2.0

package index

// Reason is why something of an object has no record.
type Reason uint8

// The reasons. Skips counts by them.
const (
	// Bookkeeping is an import that is another implementation's note to itself.
	Bookkeeping Reason = iota
	// InvalidName is an import whose name or namespace is no DNS label.
	InvalidName
	// InvalidType is an import that is neither ClusterSetIP nor Headless.
	InvalidType
	// InvalidIP is an entry of spec.ips that is no address of a service.
	InvalidIP
	// InvalidPort is a port of an import or a slice with a name, protocol or number that no record can hold.
	InvalidPort
	// InvalidAddress is an endpoint's address that is none.
	InvalidAddress
	// InvalidHostname is an endpoint's hostname that is no DNS label; the endpoint is named by its address.
	InvalidHostname
	// InvalidAddressType is a slice whose endpoints are no IP addresses.
	InvalidAddressType
	// MissingSourceCluster is a headless service's slice without the label that names its cluster: its endpoints have no
	// host name. One that Kubernetes mirrored cannot have it, and is not counted.
	MissingSourceCluster
	// InvalidSourceCluster is such a slice whose label is no cluster id.
	InvalidSourceCluster
	// NameTooLong is a record left out because a name in it would exceed 253 octets.
	NameTooLong

	reasons = int(NameTooLong) + 1
)

var reasonNames = [reasons]string{
	Bookkeeping:          "bookkeeping",
	InvalidName:          "invalid_name",
	InvalidType:          "invalid_type",
	InvalidIP:            "invalid_ip",
	InvalidPort:          "invalid_port",
	InvalidAddress:       "invalid_address",
	InvalidHostname:      "invalid_hostname",
	InvalidAddressType:   "invalid_address_type",
	MissingSourceCluster: "missing_source_cluster",
	InvalidSourceCluster: "invalid_source_cluster",
	NameTooLong:          "name_too_long",
}

// String is the reason as a metric's label has it.
func (r Reason) String() string { return reasonNames[r] }

// Reasons are all reasons there are.
func Reasons() []Reason {
	all := make([]Reason, reasons)
	for i := range all {
		all[i] = Reason(i)
	}
	return all
}

// Skips counts what was left out, by reason. The zero value and nil are none.
type Skips struct{ counts [reasons]uint32 }

// Count is how often something was left out for the reason.
func (s *Skips) Count(reason Reason) int {
	if s == nil {
		return 0
	}
	return int(s.counts[reason])
}

// skip counts one more; it makes the counts where there are none yet, so that what is sound carries none.
func skip(s **Skips, reason Reason) {
	if *s == nil {
		*s = new(Skips)
	}
	(*s).counts[reason]++
}

// mergeSkips adds more to s.
func mergeSkips(s **Skips, more *Skips) {
	if more == nil {
		return
	}
	if *s == nil {
		*s = new(Skips)
	}
	for i, n := range more.counts {
		(*s).counts[i] += n
	}
}

// equalSkips compares counts; nil is none.
func equalSkips(a, b *Skips) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
