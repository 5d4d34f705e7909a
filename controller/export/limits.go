// SPDX-License-Identifier: Apache-2.0

package export

import (
	"cmp"
	"container/heap"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/packed"
)

// Limits bound the exports of one member, so that no member can exhaust the memory. All are positive.
type Limits struct {
	// Services is the maximum number of services.
	Services int
	// Endpoints is the maximum number of their endpoints, as of Weight.
	Endpoints int
	// SliceBytes is the maximum size of one EndpointSlice in protobuf.
	SliceBytes int
}

// DefaultLimits are Kubernetes' own limits of a cluster: 10,000 Services and 150,000 pods. A slice of 1000 endpoints,
// the maximum of the API, has about 200 KiB with its snapshot.
var DefaultLimits = Limits{Services: 10_000, Endpoints: 150_000, SliceBytes: 512 << 10}

// A Limit is the name of a limit. The set is fixed, so that it can label a metric.
type Limit string

// The limits.
const (
	LimitServices   Limit = "services"
	LimitEndpoints  Limit = "endpoints"
	LimitSliceBytes Limit = "slice-bytes"
	// Shared by all members:
	LimitImports    Limit = "imports"
	LimitClusterIPs Limit = "cluster-ips"
	LimitMemory     Limit = "memory"
)

// AllLimits are all limits, in the order in which they are reported.
var AllLimits = []Limit{LimitServices, LimitEndpoints, LimitSliceBytes, LimitImports, LimitClusterIPs, LimitMemory}

// annotationTooLarge marks the stand-in of a slice that is too large.
const annotationTooLarge = Domain + "/too-large"

// Fitting returns the slice itself if it is within SliceBytes. Otherwise it returns a small stand-in, which FromSlices
// refuses, so that the former endpoints of the slice stay.
func (l Limits) Fitting(slice *discoveryv1.EndpointSlice) (_ *discoveryv1.EndpointSlice, fits bool) {
	if slice.Size() <= l.SliceBytes {
		return slice, true
	}
	standIn := &discoveryv1.EndpointSlice{AddressType: slice.AddressType}
	standIn.Namespace, standIn.Name = slice.Namespace, slice.Name
	standIn.UID, standIn.ResourceVersion = slice.UID, slice.ResourceVersion
	standIn.Annotations = map[string]string{annotationTooLarge: ""}
	for _, key := range []string{LabelService, LabelSourceCluster, LabelSliceManagedBy, LabelSet} {
		if value, found := slice.Labels[key]; found {
			standIn.Labels = set(standIn.Labels, key, value)
		}
	}
	return standIn, false
}

// IsStandIn reports whether the slice is a stand-in of Fitting.
func IsStandIn(slice *discoveryv1.EndpointSlice) bool {
	_, marked := slice.Annotations[annotationTooLarge]
	return marked
}

// A Selection selects the slices of one member that the limits allow, in bounded memory, and independent of the order
// in which they are offered. It selects whole services, imported ones first, then by namespace and name, up to the
// first that exceeds a limit.
//
// The limits never evict an imported service; they only refuse its growth. The service is withheld then: none of its
// slices is selected, and their copies in this cluster count instead.
type Selection struct {
	limits Limits
	// claim asks for that many bytes in total and reports whether they are granted.
	claim    func(bytes int) bool
	imported map[types.NamespacedName]Weight

	taken map[types.NamespacedName]*taken
	// order has the services that can be refused, last first: new ones, and imported ones that grow.
	order services
	// services, endpoints and bytes are the totals of what is taken or imported.
	services, endpoints, bytes int
	// end is the first service that does not fit, nil if all do. hit is the limit that it exceeds.
	end      *types.NamespacedName
	hit      Limit
	withheld map[types.NamespacedName]Weight
}

type taken struct {
	slices []*packed.Slice
	weight Weight
	queued bool // in Selection.order
}

// NewSelection returns an empty selection. imported are the services that are imported from the member, with the weight
// of the copies of their slices; the map must not change meanwhile. claim asks for the selection's memory, nil for no
// limit.
func NewSelection(limits Limits, imported map[types.NamespacedName]Weight, claim func(bytes int) bool) *Selection {
	s := &Selection{
		limits:   limits,
		claim:    claim,
		imported: imported,
		taken:    map[types.NamespacedName]*taken{},
		services: len(imported),
		withheld: map[types.NamespacedName]Weight{},
	}
	s.order.compare = s.compare
	for _, weight := range imported {
		s.endpoints += weight.Endpoints()
		s.bytes += weight.Bytes
	}
	return s
}

// Offer selects or refuses the slice of a service. The slice is a result of Limits.Fitting.
func (s *Selection) Offer(service types.NamespacedName, slice *discoveryv1.EndpointSlice) {
	before, imported := s.imported[service]
	beyond := s.end != nil && s.compare(service, *s.end) >= 0
	if _, withheld := s.withheld[service]; withheld || beyond && !imported {
		return
	}
	of := s.taken[service]
	if of == nil {
		of = &taken{}
		s.taken[service] = of
		if !imported {
			s.services++
		}
	}
	s.count(of.weight, before, -1)
	of.slices = append(of.slices, packed.New(slice))
	of.weight = of.weight.Plus(WeightOf(slice))
	s.count(of.weight, before, 1)
	if imported && of.weight.Endpoints() <= before.Endpoints() && of.weight.Bytes <= before.Bytes {
		return
	}
	if beyond {
		s.refuse(service)
		return
	}
	if !of.queued {
		of.queued = true
		heap.Push(&s.order, service)
	}
	for s.order.Len() > 0 {
		exceeded := s.exceeded()
		if exceeded == "" {
			return
		}
		last, _ := heap.Pop(&s.order).(types.NamespacedName)
		s.end, s.hit = &last, exceeded
		s.refuse(last)
	}
}

// count adds or subtracts a service in the totals. An imported service counts at least as before.
func (s *Selection) count(weight, before Weight, sign int) {
	s.endpoints += sign * max(weight.Endpoints(), before.Endpoints())
	s.bytes += sign * max(weight.Bytes, before.Bytes)
}

// exceeded returns an exceeded limit, empty for none.
func (s *Selection) exceeded() Limit {
	_, imported := s.imported[s.order.list[0]]
	switch {
	case !imported && s.services > s.limits.Services:
		return LimitServices
	case s.endpoints > s.limits.Endpoints:
		return LimitEndpoints
	case s.claim != nil && !s.claim(s.bytes):
		return LimitMemory
	}
	return ""
}

// refuse drops the slices of a service.
func (s *Selection) refuse(service types.NamespacedName) {
	before, imported := s.imported[service]
	s.count(s.taken[service].weight, before, -1)
	delete(s.taken, service)
	if !imported {
		s.services--
		return
	}
	s.count(before, before, 1)
	s.withheld[service] = before
}

// Slices returns the selected slices in no order.
func (s *Selection) Slices() []*packed.Slice {
	var all []*packed.Slice
	for _, of := range s.taken {
		all = append(all, of.slices...)
	}
	return all
}

// Refused returns the first service that does not fit and the limit that it exceeds, if there is one. New services
// after it are not selected either.
func (s *Selection) Refused() (first types.NamespacedName, hit Limit, any bool) {
	if s.end == nil {
		return types.NamespacedName{}, "", false
	}
	return *s.end, s.hit, true
}

// Withheld returns the imported services that were not selected, with the weight of their copies. The member still
// exports them. The map belongs to the Selection.
func (s *Selection) Withheld() map[types.NamespacedName]Weight { return s.withheld }

// Gone reports whether an imported service was not offered, so that its room was not used.
func (s *Selection) Gone() bool {
	seen := len(s.withheld)
	for service := range s.taken {
		if _, imported := s.imported[service]; imported {
			seen++
		}
	}
	return seen < len(s.imported)
}

// compare orders services by their precedence.
func (s *Selection) compare(a, b types.NamespacedName) int {
	return cmp.Or(s.rank(a)-s.rank(b), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func (s *Selection) rank(service types.NamespacedName) int {
	if _, imported := s.imported[service]; imported {
		return 0
	}
	return 1
}

// services is a heap of services, the last one first.
type services struct {
	list    []types.NamespacedName
	compare func(a, b types.NamespacedName) int
}

func (s *services) Len() int           { return len(s.list) }
func (s *services) Less(i, j int) bool { return s.compare(s.list[i], s.list[j]) > 0 }
func (s *services) Swap(i, j int)      { s.list[i], s.list[j] = s.list[j], s.list[i] }

// Push implements heap.Interface.
func (s *services) Push(service any) {
	if one, ok := service.(types.NamespacedName); ok {
		s.list = append(s.list, one)
	}
}

// Pop implements heap.Interface.
func (s *services) Pop() any {
	last := s.list[len(s.list)-1]
	s.list = slices.Delete(s.list, len(s.list)-1, len(s.list))
	return last
}
