// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterset-dns/clusterset-dns/controller/selector"
)

// maxWeights bounds the clusters with a weight.
const maxWeights = 64

// Weights are the percentages of the traffic that clusters are to get, by id. Clusters without a weight share the rest.
type Weights map[string]int

// ParseWeights returns the weights of a text such as "west=10, north=20"; empty means none.
func ParseWeights(text string) (Weights, error) {
	if text == "" {
		return nil, nil
	}
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%q are no weights: %s", shorten(text), fmt.Sprintf(format, args...))
	}
	if len(text) > selector.MaxLength {
		return nil, refuse("use at most %d bytes", selector.MaxLength)
	}
	weights := Weights{}
	for part := range strings.SplitSeq(text, ",") {
		id, percent, found := strings.Cut(part, "=")
		id = strings.TrimSpace(id)
		weight, err := strconv.Atoi(strings.TrimSpace(percent))
		_, repeated := weights[id]
		switch {
		case !found || id == "" || err != nil || weight < 0 || weight > 100:
			return nil, refuse("use <cluster id>=<0 to 100>, separated by commas")
		case repeated:
			return nil, refuse("%q has two", shorten(id))
		}
		weights[id] = weight
	}
	if len(weights) > maxWeights {
		return nil, refuse("use at most %d", maxWeights)
	}
	return weights, nil
}

// Used returns how many endpoints of each cluster are to be used, of those that are ready, so that even load gives the
// shares that are asked for: to half an endpoint, except that a cluster has no more than are ready, and at least one if
// its weight is not 0. Clusters without a ready endpoint take no part.
func (w Weights) Used(ready map[string]int) map[string]int {
	used := make(map[string]int, len(ready))
	total, present, rest := 0, 0, 0
	for _, weight := range w {
		total += weight
	}
	for cluster, n := range ready {
		if weight, weighted := w[cluster]; !weighted {
			rest += n
		} else if n > 0 {
			present += weight
		}
	}
	// Each cluster gets weight * scale / of endpoints.
	scale, of := rest, 100-present
	if total >= 100 || rest == 0 {
		scale, of = 0, 1
		for cluster, weight := range w { // as many as the cluster that has the fewest for its weight allows
			if n := ready[cluster]; weight > 0 && n > 0 && (scale == 0 || n*of < scale*weight) {
				scale, of = n, weight
			}
		}
	}
	for cluster, n := range ready {
		weight, weighted := w[cluster]
		switch {
		case !weighted && total < 100:
			used[cluster] = n
		case weight > 0 && n > 0:
			used[cluster] = min(max((2*weight*scale+of)/(2*of), 1), n)
		default:
			used[cluster] = 0
		}
	}
	return used
}

// A Place is the place of an endpoint in the order in which the endpoints of its cluster are used.
type Place struct {
	hash    uint64
	address string
}

// PlaceOf returns the place of an address of a service. It is the same everywhere, and for each service another.
func PlaceOf(service, address string) Place {
	sum := sha256.Sum256([]byte(service + " " + address))
	return Place{binary.BigEndian.Uint64(sum[:]), address}
}

// Compare compares two places as cmp.Compare does.
func (p Place) Compare(other Place) int {
	return cmp.Or(cmp.Compare(p.hash, other.hash), cmp.Compare(p.address, other.address))
}

// Last returns the last of the first n places; each counts once. There are at least n, and n is positive.
func Last(places []Place, n int) Place {
	places = slices.Clone(places)
	slices.SortFunc(places, Place.Compare)
	return slices.Compact(places)[n-1]
}
