// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// Weights are the percentages of the traffic that clusters should get, by id. Clusters without a weight share the rest.
type Weights map[string]int

// parseWeights returns the weights of a text such as "west=10, north=20"; empty means none.
func parseWeights(text string) (Weights, error) {
	if text == "" {
		return nil, nil
	}
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%.63q are no weights: %s", text, fmt.Sprintf(format, args...))
	}
	if len(text) > scope.MaxSelector {
		return nil, refuse("use at most %d bytes", scope.MaxSelector)
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
			return nil, refuse("%.63q has two", id)
		}
		weights[id] = weight
	}
	return weights, nil
}

// sums returns the sum of all weights, the sum of the weights of clusters with ready endpoints, and the number of ready
// endpoints of clusters without a weight.
func (w Weights) sums(ready map[string]int) (total, present, rest int) {
	for cluster, n := range ready {
		if weight, weighted := w[cluster]; !weighted {
			rest += n
		} else if n > 0 {
			present += weight
		}
	}
	return sum(w), present, rest
}

// Used returns how many ready endpoints of each cluster to use, so that even load gives the requested shares: to half an
// endpoint, but no more endpoints than are ready, and at least one if the weight is not 0. Clusters without a ready
// endpoint take no part.
func (w Weights) Used(ready map[string]int) map[string]int {
	used := make(map[string]int, len(ready))
	total, present, rest := w.sums(ready)
	// Each cluster gets weight * scale / of endpoints.
	scale, of := rest, 100-present
	if total >= 100 || rest == 0 {
		scale, of = 0, 1
		for cluster, weight := range w { // the cluster with the fewest endpoints for its weight limits all
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

// usualWeight is the default weight of SRV records.
const usualWeight = 100

// scale is the weight of SRV records for each percent that an endpoint should get. It is fixed, so that no cluster's
// weight depends on the scale of others, and 100 percent for one endpoint are within 16 bits.
const scale = 512

// each returns the weights of SRV records (RFC 2782) by which clients that choose among all ready endpoints give clusters
// their shares, for each endpoint of a cluster: 0 if it should get nothing, and from 1 to 51200 otherwise. The result for
// a cluster in w depends on its own endpoints alone. Clusters that are not in w count as one: their result depends on the
// sum of their endpoints, and on which clusters in w have endpoints. Results stay the same while few endpoints come and
// go. Shares are exact to 1/16 of their value if no cluster has more than 32 endpoints for each percent.
func (w Weights) each(ready map[string]int) map[string]int {
	total, present, rest := w.sums(ready)
	each := make(map[string]int, len(ready))
	for cluster, n := range ready {
		weight, weighted := w[cluster]
		switch {
		case n == 0:
			weight = 0
		case !weighted && total < 100:
			weight, n = 100-present, rest
		}
		each[cluster] = 0
		if weight > 0 {
			each[cluster] = max(rounded(float64(weight)/float64(n)*scale), 1)
		}
	}
	return each
}

// rounded rounds to five significant bits, and to a whole number.
func rounded(weight float64) int {
	fraction, exponent := math.Frexp(weight)
	if exponent < 5 {
		return int(math.Round(weight))
	}
	return int(math.Round(fraction*32)) << (exponent - 5)
}
