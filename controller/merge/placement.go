// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"math"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// A Level is the place of endpoints in the order of use, from 0. An endpoint is demoted if and only if everything that
// its slice serves has a ready endpoint of a lower level.
type Level int

// Unused is the level of endpoints that no client may use. Their slices stay, so that they can be used later.
const Unused Level = math.MaxInt

// A Placement decides in which order the endpoints of one import are used, and marks the merged slices accordingly.
type Placement interface {
	// Level returns the level use at which an endpoint of the contribution is used, and the level cover as which it counts
	// for the demotion of others. Either both are Unused or none is.
	Level(from Contribution, endpoint *discoveryv1.Endpoint) (use, cover Level)
	// Decorate completes the object of a slice. demoted are the indices of ready endpoints that are not ready in the
	// object. The endpoints of the object may be shared, and must be replaced as a whole.
	Decorate(object *discoveryv1.EndpointSlice, from Contribution, slice *export.Slice, demoted []int)
	// Hinted reports whether Decorate adds hints of its own, besides those for the trafficDistribution of the import.
	// The derived Service then has a trafficDistribution, because some data planes follow hints only with it.
	Hinted() bool
	// Conditions returns the import's conditions about the placement. Their types are in export.Domain.
	Conditions() []metav1.Condition
	// Rules returns the rules that decide when the endpoints of a cluster are used, the strongest first.
	Rules(cluster string) []string
}

// Placing returns the Placement of an import, which has its new spec and annotations, and its old status, or is empty if
// there is none. The contributions are in their precedence, and there may be none.
type Placing func(imported *v1beta1.ServiceImport, contributions []Contribution) Placement
