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
)

// weightBytes is how many bytes of a slice count as one endpoint.
const weightBytes = 1 << 10

// Weight is what a slice counts: its endpoints, or one for each KiB that it has
// where that is more, and at least one.
func Weight(slice *discoveryv1.EndpointSlice) int {
	return max(1, len(slice.Endpoints), slice.Size()/weightBytes)
}

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
type Selection struct {
	limits   Limits
	imported map[types.NamespacedName]struct{}

	taken  map[types.NamespacedName]*taken
	order  services // of what is taken, the last one first
	weight int
	// end is the first service that is not taken, nil where all are.
	end *types.NamespacedName
	// refused are the imported services some slice of which was not taken.
	refused map[types.NamespacedName]struct{}
}

type taken struct {
	slices []*discoveryv1.EndpointSlice
	weight int
}

// NewSelection returns a selection that took nothing yet. The map is not
// changed, and must not change meanwhile.
func NewSelection(limits Limits, imported map[types.NamespacedName]struct{}) *Selection {
	s := &Selection{
		limits:   limits,
		imported: imported,
		taken:    map[types.NamespacedName]*taken{},
		refused:  map[types.NamespacedName]struct{}{},
	}
	s.order.compare = s.compare
	return s
}

// Offer takes the slice of a service, as of Limits.Fitting, or does not.
func (s *Selection) Offer(service types.NamespacedName, slice *discoveryv1.EndpointSlice) {
	if s.end != nil && s.compare(service, *s.end) >= 0 {
		s.refuse(service)
		return
	}
	of := s.taken[service]
	if of == nil {
		of = &taken{}
		s.taken[service] = of
		heap.Push(&s.order, service)
	}
	weight := Weight(slice)
	of.slices = append(of.slices, slice)
	of.weight += weight
	s.weight += weight
	for len(s.taken) > s.limits.Services || s.weight > s.limits.Endpoints {
		last, _ := heap.Pop(&s.order).(types.NamespacedName)
		s.weight -= s.taken[last].weight
		delete(s.taken, last)
		s.end = &last
		s.refuse(last)
	}
}

func (s *Selection) refuse(service types.NamespacedName) {
	if _, imported := s.imported[service]; imported {
		s.refused[service] = struct{}{}
	}
}

// Slices returns what was taken, in no order.
func (s *Selection) Slices() []*discoveryv1.EndpointSlice {
	var all []*discoveryv1.EndpointSlice
	for _, of := range s.taken {
		all = append(all, of.slices...)
	}
	return all
}

// Refused returns the first service in order that was not taken and the limit
// that it would have exceeded. Those after it were not taken either. There is
// none where all were.
func (s *Selection) Refused() (first types.NamespacedName, hit Limit, any bool) {
	if s.end == nil {
		return types.NamespacedName{}, "", false
	}
	if len(s.taken) >= s.limits.Services {
		return *s.end, LimitServices, true
	}
	return *s.end, LimitEndpoints, true
}

// RefusedImported returns the services that are imported already and were not
// taken, in no order: the member exports them still.
func (s *Selection) RefusedImported() []types.NamespacedName {
	services := make([]types.NamespacedName, 0, len(s.refused))
	for service := range s.refused {
		services = append(services, service)
	}
	return services
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
