// SPDX-License-Identifier: Apache-2.0

package export

import (
	"cmp"
	"container/heap"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Limits bound what one member may contribute, so that no member can take the
// memory that the others need. All are positive.
type Limits struct {
	// Services is how many services it may export.
	Services int
	// Endpoints is how many endpoints they may have together, as of Weight.
	Endpoints int
	// SliceBytes is how many bytes one EndpointSlice may have, in the
	// protobuf form in which it is read. It is at most MaxSliceBytes.
	SliceBytes int
}

// MaxSliceBytes is the most that Limits.SliceBytes may be: more than an API
// server takes.
const MaxSliceBytes = 2 << 20

// DefaultLimits are those that Kubernetes has for a whole cluster: 10,000
// Services and 150,000 pods. A slice of 1000 endpoints, which is the most that
// the API allows, with a snapshot has some 200 KiB.
var DefaultLimits = Limits{Services: 10_000, Endpoints: 150_000, SliceBytes: 512 << 10}

// A Limit is the name of one of the Limits. The set is fixed, so that it can
// label a metric.
type Limit string

// The limits.
const (
	LimitServices   Limit = "services"
	LimitEndpoints  Limit = "endpoints"
	LimitSliceBytes Limit = "slice-bytes"
	// Those that all members share.
	LimitImports    Limit = "imports"
	LimitClusterIPs Limit = "cluster-ips"
	LimitMemory     Limit = "memory"
)

// AllLimits are all of them, in the order in which they are reported.
var AllLimits = []Limit{LimitServices, LimitEndpoints, LimitSliceBytes, LimitImports, LimitClusterIPs, LimitMemory}

// annotationTooLarge marks what Fitting left of a slice.
const annotationTooLarge = Domain + "/too-large"

// Fitting returns the slice itself where it has no more bytes than the limit.
// Else it returns a small stand-in, which FromSlices refuses as a whole, so that
// what was known of the slice stays.
func (l Limits) Fitting(slice *discoveryv1.EndpointSlice) (_ *discoveryv1.EndpointSlice, fits bool) {
	if slice.Size() <= l.SliceBytes {
		return slice, true
	}
	standIn := &discoveryv1.EndpointSlice{AddressType: slice.AddressType}
	standIn.Namespace, standIn.Name = slice.Namespace, slice.Name
	standIn.UID, standIn.ResourceVersion = slice.UID, slice.ResourceVersion
	standIn.Annotations = map[string]string{annotationTooLarge: ""}
	for _, key := range []string{LabelService, LabelSourceCluster, LabelSliceManagedBy} {
		if value, found := slice.Labels[key]; found {
			standIn.Labels = set(standIn.Labels, key, value)
		}
	}
	return standIn, false
}

// IsStandIn reports whether Fitting put the slice in the place of a larger one.
func IsStandIn(slice *discoveryv1.EndpointSlice) bool {
	_, marked := slice.Annotations[annotationTooLarge]
	return marked
}

// A Selection takes from the slices of one member what the limits allow, and
// holds no more than that, in whatever order and number the slices come. It
// takes whole services, those that are imported already before all others and
// then by namespace and name, up to the first that does not fit.
//
// An imported service has its place as it is, whatever the limits are: only
// what it grows by can be refused. It is withheld then: none of its slices is
// taken, and the copies that this cluster has of them count instead.
type Selection struct {
	limits Limits
	// claim asks for so many bytes in all, and reports whether they are granted.
	claim    func(bytes int) bool
	imported map[types.NamespacedName]Weight

	taken map[types.NamespacedName]*taken
	// order are the services that can be refused, the last one first: those that
	// are new, and the imported ones that grow.
	order services
	// services, endpoints and bytes are of all that is taken and imported.
	services, endpoints, bytes int
	// end is the first service that does not fit, nil if all fit, and hit the
	// limit that it exceeds.
	end      *types.NamespacedName
	hit      Limit
	withheld map[types.NamespacedName]Weight
}

type taken struct {
	slices []*discoveryv1.EndpointSlice
	weight Weight
	queued bool // in Selection.order
}

// NewSelection returns a selection that took nothing yet. imported are the
// services that are imported of the member, with what the copies of their
// slices weigh; the map is not changed, and must not change meanwhile. claim
// asks for the memory that the selection takes; nil for no limit.
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

// Offer takes the slice of a service, as of Limits.Fitting, or does not.
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
	of.slices = append(of.slices, slice)
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

// count adds what a service counts, or takes it away: an imported one counts as
// it was before, at least.
func (s *Selection) count(weight, before Weight, sign int) {
	s.endpoints += sign * max(weight.Endpoints(), before.Endpoints())
	s.bytes += sign * max(weight.Bytes, before.Bytes)
}

// exceeded returns a limit that is exceeded, empty if none is.
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

// refuse drops what was taken of a service.
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

// Slices returns what was taken, in no order.
func (s *Selection) Slices() []*discoveryv1.EndpointSlice {
	var all []*discoveryv1.EndpointSlice
	for _, of := range s.taken {
		all = append(all, of.slices...)
	}
	return all
}

// Refused returns the first service in order that does not fit, and the limit
// that it exceeds. New services after it were not taken either. There is none if
// all fit.
func (s *Selection) Refused() (first types.NamespacedName, hit Limit, any bool) {
	if s.end == nil {
		return types.NamespacedName{}, "", false
	}
	return *s.end, s.hit, true
}

// Withheld returns the imported services that were not taken, with what their
// copies weigh: the member exports them still. The map is the Selection's own.
func (s *Selection) Withheld() map[types.NamespacedName]Weight { return s.withheld }

// Gone reports whether an imported service was not offered, so that there is
// more room than the Selection could give away.
func (s *Selection) Gone() bool {
	seen := len(s.withheld)
	for service := range s.taken {
		if _, imported := s.imported[service]; imported {
			seen++
		}
	}
	return seen < len(s.imported)
}

// compare orders services by their claim to be taken.
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
