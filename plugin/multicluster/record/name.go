// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"
	"strings"
)

// Names follow the grammar of the multicluster DNS specification 1.0.0 (KEP-1645, specification.md). The names below a
// zone are
//
//	dns-version                                TXT, the version of the specification
//	ns.dns                                     the address of the name server
//	<service>.<namespace>.svc                  a service
//	_<port>._<proto>.<service>.<namespace>.svc a named port of a service
//	<host>.<cluster>.<service>.<namespace>.svc an endpoint of a headless service
//
// and, as in CoreDNS's kubernetes plugin with the option zonal,
//
//	<zone>.pin|prefer._zone.<service>.<namespace>.svc the endpoints of a headless service in a topology zone
//
// and the names above these, which exist and have no records. A cluster id has one or two labels (KEP-2149), a topology
// zone any number.
//
// Names are in the presentation form of miekg/dns. Parts are not unescaped: no Kubernetes name has a label that needs
// an escape, so such labels match nothing.

// Kind is the kind of a name.
type Kind uint8

// The kinds of names. Only the index knows whether a name of kind Namespace or deeper exists.
const (
	// KindUnknown is a name that cannot exist below a zone.
	KindUnknown Kind = iota
	// KindApex is the zone itself, or another name that every zone has.
	KindApex
	// KindNamespace is <namespace>.svc.
	KindNamespace
	// KindService is <service>.<namespace>.svc.
	KindService
	// KindProtocol is _<proto>.<service>.<namespace>.svc.
	KindProtocol
	// KindPort is _<port>._<proto>.<service>.<namespace>.svc.
	KindPort
	// KindCluster is a single label before a service: a cluster id, or its last label.
	KindCluster
	// KindHost is two or three labels before a service: a host and a cluster id, or a cluster id of two labels.
	KindHost
	// KindTopologyZone is a topology zone, or a name above it: [[<zone>.]pin|prefer.]_zone before a service.
	KindTopologyZone
)

// Request is a parsed name. Its strings are parts of the name, in lower case.
type Request struct {
	// Kind tells which of the other fields are set.
	Kind Kind
	// Apex is set for kind Apex: the name relative to the zone, empty for the zone itself.
	Apex string
	// Namespace is set from kind Namespace on.
	Namespace string
	// Service is set from kind Service on.
	Service string
	// Key is "<service>.<namespace>", set from kind Service on.
	Key string
	// Prefix is the labels before the service, set for the kinds after Service.
	Prefix string
	// Port is the port's name without its underscore, set for kind Port.
	Port string
	// Protocol is the protocol's name without its underscore, set for kinds Protocol and Port.
	Protocol string
	// Host is the first label, set for kind Host.
	Host string
	// Cluster is the label or labels after the host, set for kinds Cluster and Host.
	Cluster string
	// TopologyZone is set for kind TopologyZone; empty above one. Prefers falls back to all zones.
	TopologyZone string
	Prefers      bool
}

// Parse parses a name relative to a zone, without the dot before the zone; it is empty for the zone itself. Case does
// not matter. r must be zero before the call.
func (r *Request) Parse(below string) {
	below = strings.ToLower(below)
	if rest, last := cutLast(below); rest != "" && last == "svc" {
		if rest[0] != '.' && !strings.Contains(below, "..") {
			r.parseService(rest)
		}
	} else if slices.Contains(apexNames, below) {
		r.Kind, r.Apex = KindApex, below
	}
}

// apexNames are the names that every zone has, relative to the zone. The last two have no records.
var apexNames = []string{"", "dns-version", "ns.dns", "dns", "svc"}

// parseService parses the labels before svc. No label is empty.
func (r *Request) parseService(below string) {
	before, namespace := cutLast(below)
	if before == "" {
		r.Kind, r.Namespace = KindNamespace, namespace
		return
	}
	prefix, service := cutLast(before)
	r.Kind, r.Namespace, r.Service, r.Key = KindService, namespace, service, below[len(before)-len(service):]
	if prefix != "" && !r.parsePrefix(prefix) {
		*r = Request{}
	}
}

// parsePrefix parses the labels before the service. ok is false if the labels match no kind.
func (r *Request) parsePrefix(prefix string) (ok bool) {
	r.Prefix = prefix
	if before, last := cutLast(prefix); last == "_zone" {
		zone, directive := cutLast(before)
		r.Kind, r.TopologyZone, r.Prefers = KindTopologyZone, zone, directive == "prefer"
		return before == "" || r.Prefers || directive == "pin"
	}
	first, rest, several := strings.Cut(prefix, ".")
	second, third, _ := strings.Cut(rest, ".")
	plain, underscore := strings.CutPrefix(first, "_")
	protocol, both := strings.CutPrefix(second, "_")
	switch {
	case underscore && !several:
		r.Kind, r.Protocol = KindProtocol, plain
		return plain != ""
	case underscore && both && third == "":
		r.Kind, r.Port, r.Protocol = KindPort, plain, protocol
		return plain != "" && protocol != ""
	case underscore || both || strings.HasPrefix(third, "_"):
		return false // a port name has both underscores, a host name has none
	case !several:
		r.Kind, r.Cluster = KindCluster, prefix
	default:
		r.Kind, r.Host, r.Cluster = KindHost, first, rest
	}
	return !strings.Contains(third, ".") // at most a host and a cluster id of two labels
}

// cutLast splits s before its last label. No label of s is empty.
func cutLast(s string) (before, label string) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return "", s
	}
	return s[:i], s[i+1:]
}
