// SPDX-License-Identifier: Apache-2.0

// Package name tells what a query name asks for.
//
// The grammar is that of the multicluster DNS specification 1.0.0 (KEP-1645, specification.md). Below a zone there are
//
//	dns-version                                TXT, the version of the specification
//	ns.dns                                     the address of the name server
//	<service>.<namespace>.svc                  a service
//	_<port>._<proto>.<service>.<namespace>.svc a named port of a service
//	<host>.<cluster>.<service>.<namespace>.svc an endpoint of a headless service
//
// and the names above these, which exist and hold no record. A cluster id is one label or two (KEP-2149).
//
// The package is pure and its functions do not allocate: what they return are parts of the name they were given, in the
// case in which they came. They take names in the presentation form of miekg/dns. Labels with an escape in them name
// nothing that Kubernetes can hold, so the parts need no unescaping: they match nothing.
package name

import "strings"

// Kind is what a name is for.
type Kind uint8

// The kinds of names. Whether a name of kind Namespace or deeper exists is for the index to say.
const (
	// Unknown is a name that cannot exist below a zone.
	Unknown Kind = iota
	// Apex is the zone itself.
	Apex
	// Version is dns-version, which holds the version of the specification.
	Version
	// NameServer is ns.dns, the target of the zone's NS record.
	NameServer
	// Above is a name that always exists and never holds a record: dns and svc.
	Above
	// Namespace is <namespace>.svc.
	Namespace
	// Service is <service>.<namespace>.svc.
	Service
	// Protocol is _<proto>.<service>.<namespace>.svc.
	Protocol
	// Port is _<port>._<proto>.<service>.<namespace>.svc.
	Port
	// Cluster is a single label before a service: a cluster id, or the last label of one.
	Cluster
	// Host is two or three labels before a service: a host and a cluster id, or, where there are two, a cluster id.
	Host
)

// Request is what a name asks for. Its strings are parts of the name.
type Request struct {
	// Kind tells which of the other fields are set.
	Kind Kind
	// Namespace is set from kind Namespace on.
	Namespace string
	// Service is set from kind Service on.
	Service string
	// Key is "<service>.<namespace>", set from kind Service on.
	Key string
	// Port is the port's name without its underscore, set for kind Port.
	Port string
	// Protocol is the protocol's name without its underscore, set for kinds Protocol and Port.
	Protocol string
	// Host is the first label, set for kind Host.
	Host string
	// Cluster is the label or labels after the host, set for kinds Cluster and Host.
	Cluster string
	// Prefix is all labels before the service, set for kinds Cluster and Host.
	Prefix string
}

const (
	labelVersion    = "dns-version"
	labelNameServer = "ns"
	labelDNS        = "dns"
	labelService    = "svc"
)

// Cut returns the part of the fully qualified name before the zone, without the dot between them, and whether the name
// lies in the zone. The part is empty for the zone itself. Case does not matter.
func Cut(name, zone string) (string, bool) {
	if len(zone) > len(name) {
		return "", false
	}
	cut := len(name) - len(zone)
	if !EqualFold(name[cut:], zone) {
		return "", false
	}
	if cut == 0 {
		return "", true
	}
	if zone == "." {
		return name[:cut], !escaped(name, cut)
	}
	if name[cut-1] != '.' || escaped(name, cut-1) {
		return "", false
	}
	return name[:cut-1], true
}

// EqualFold is strings.EqualFold, and faster if the case is the same, as in most queries.
func EqualFold(a, b string) bool { return a == b || strings.EqualFold(a, b) }

// escaped reports whether the octet at i follows an odd number of backslashes.
func escaped(name string, i int) bool {
	odd := false
	for i--; i >= 0 && name[i] == '\\'; i-- {
		odd = !odd
	}
	return odd
}

// Parse tells what a name below a zone asks for. It takes the part that Cut returns. Case does not matter.
func Parse(below string) (r Request) {
	if below == "" {
		r.Kind = Apex
		return r
	}
	rest, last := cutLast(below)
	switch {
	case EqualFold(last, labelService):
		if rest == "" && last != below {
			break // an empty label
		}
		r.parseService(rest)
	case last == below && strings.EqualFold(last, labelVersion):
		r.Kind = Version
	case last == below && strings.EqualFold(last, labelDNS):
		r.Kind = Above
	case strings.EqualFold(last, labelDNS) && strings.EqualFold(rest, labelNameServer):
		r.Kind = NameServer
	}
	return r
}

// parseService parses the labels before svc. An empty label leaves the kind unknown.
func (r *Request) parseService(below string) {
	if below == "" {
		r.Kind = Above
		return
	}
	before, namespace := cutLast(below)
	if namespace == "" {
		return
	}
	if len(namespace) == len(below) {
		r.Kind, r.Namespace = Namespace, namespace
		return
	}
	prefix, service := cutLast(before)
	if service == "" {
		return
	}
	r.Namespace, r.Service, r.Key = namespace, service, below[len(before)-len(service):]
	if len(service) == len(before) {
		r.Kind = Service
		return
	}
	r.parsePrefix(prefix)
}

// parsePrefix parses the labels before the service.
func (r *Request) parsePrefix(prefix string) {
	first, rest, several := strings.Cut(prefix, ".")
	second, third, three := strings.Cut(rest, ".")
	switch {
	case first == "" || several && second == "" || three && third == "":
		*r = Request{} // an empty label
	case strings.IndexByte(third, '.') >= 0:
		*r = Request{} // more than a host and a cluster id of two labels
	case first[0] == '_' && !several && len(first) > 1:
		r.Kind, r.Protocol = Protocol, first[1:]
	case first[0] == '_' && several && !three && second[0] == '_' && len(first) > 1 && len(second) > 1:
		r.Kind, r.Port, r.Protocol = Port, first[1:], second[1:]
	case first[0] == '_' || several && second[0] == '_' || three && third[0] == '_':
		*r = Request{} // a port name has both underscores, a host name has none
	case !several:
		r.Kind, r.Cluster, r.Prefix = Cluster, prefix, prefix
	default:
		r.Kind, r.Host, r.Cluster, r.Prefix = Host, first, rest, prefix
	}
}

// cutLast splits s before its last label. No label of s is empty.
func cutLast(s string) (before, label string) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return "", s
	}
	return s[:i], s[i+1:]
}
