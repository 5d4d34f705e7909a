// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"maps"
	"reflect"
	"slices"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
	"github.com/clusterset-dns/clusterset-dns/test/sim/oracle/judge"
)

// A known is a contribution that surely arrived at a reader, and when that was certain.
type known struct {
	contribution
	at time.Time
}

// A sharing is what a run knows of the service in all clusters.
type sharing struct {
	// used has pairs of addresses of which the second one was left out although the first was used, and where.
	used map[[2]string]string
	// known has what surely arrived.
	known map[judge.Way]known
}

// seePlaced asserts of each state of a slice that it has no endpoint that is not for the cluster, uses none outside of the
// border, and uses endpoints in one order, which is the same in all clusters and at all times.
func (c *cluster) seePlaced(slice *discoveryv1.EndpointSlice, deleted bool) {
	c.shown = time.Now()
	from := slice.Labels[v1beta1.LabelSourceCluster]
	if deleted || from == "" {
		return
	}
	if limits := c.r.limits; !limits.admits(c.Name, from) {
		if !slices.Contains(limits.chosen, c.Name) && len(slice.Endpoints) > 0 ||
			slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return *e.Conditions.Ready || *e.Conditions.Serving }) {
			c.r.find("%s: a slice in %s has endpoints of %s: %+v", time.Now().Format(time.TimeOnly), c.Name, from, limits)
		}
	}
	ready, demoted := conditions(slice)
	for _, one := range ready {
		for _, other := range demoted {
			if where, wrong := c.r.sharing.used[[2]string{other, one}]; wrong {
				c.r.find("%s: a slice in %s uses %s before %s, which was used before it in %s",
					time.Now().Format(time.TimeOnly), c.Name, one, other, where)
			}
			c.r.sharing.used[[2]string{one, other}] = c.Name
		}
	}
}

// lookAtTruth notes what the clusters contribute, and since when.
func (r *run) lookAtTruth() {
	for _, c := range r.clusters {
		if !c.unread {
			continue
		}
		c.unread = false
		if is := c.contributes(); !reflect.DeepEqual(is, c.contribution) {
			c.contribution, c.contributed = is, append(c.contributed, time.Now())
		}
	}
}

// quick is after how long a change has surely arrived over a way that is clear.
const quick = 10 * time.Second

// clearFor tells whether a way is clear, and was for so long or since the schedule began.
func (r *run) clearFor(way judge.Way, long time.Duration) bool {
	since := time.Now().Add(-long)
	if since.Before(r.began) {
		since = r.began
	}
	return r.judge.ClearSince(way.From, way.To, since)
}

// knows returns what the cluster surely knows of another, and whether it surely takes it for silent.
func (c *cluster) knows(other *cluster) (is contribution, silent, certain bool) {
	way, now := judge.Way{From: other.Name, To: c.Name}, time.Now()
	if c.r.clearFor(way, bound) {
		if len(other.contributed) > 0 && now.Sub(other.contributed[len(other.contributed)-1]) < quick {
			return contribution{}, false, false
		}
		c.r.sharing.known[way] = known{other.contribution, now}
		// A member that failed often is taken for silent for longer.
		return other.contribution, false, other == c || c.r.clearFor(way, 2*bound)
	}
	began, told := c.r.silent[way], c.r.sharing.known[way]
	if began.IsZero() || now.Sub(began) < bound || began.Sub(told.at) > 2*c.r.lookEvery ||
		slices.ContainsFunc(other.contributed, func(at time.Time) bool {
			return at.After(told.at) && at.Before(began.Add(2*c.r.lookEvery))
		}) {
		return contribution{}, false, false
	}
	return told.contribution, true, true
}

// publishes is more than the time between two answers of DNS while a service changes all the time.
const publishes = 200 * time.Millisecond

// askPlaced asserts of a cluster what is used and answered now.
func (c *cluster) askPlaced() {
	limits := c.r.limits
	answers := c.ask(placedName).Addresses // none of a DNS that is down
	for _, address := range answers {
		if other := c.r.names[address.As4()[2]]; !limits.admits(c.Name, other) {
			c.r.find("%s: %s answers the address %s of %s: %+v", time.Now().Format(time.TimeOnly), c.Name, address, other, limits)
		}
	}
	if !c.r.weighs || len(c.left) > 0 || c.away || !c.r.clearFor(judge.Way{From: c.Name, To: c.Name}, bound) {
		return
	}
	got, ready, demoted := map[string]int{}, []string{}, []string{}
	for _, slice := range apiserver.List[*discoveryv1.EndpointSlice](c.API, discoveryv1.Resource("endpointslices")) {
		if slice.Labels[v1beta1.LabelServiceName] == placedName {
			used, left := conditions(slice)
			ready, demoted = append(ready, used...), append(demoted, left...)
			got[slice.Labels[v1beta1.LabelSourceCluster]] += len(used)
		}
	}
	maps.DeleteFunc(got, func(_ string, n int) bool { return n == 0 })
	if len(ready) == 0 && len(demoted) > 0 {
		c.r.find("%s: %s demotes all endpoints of %s: %v", time.Now().Format(time.TimeOnly), c.Name, placedName, demoted)
	}
	if len(ready) > 0 && time.Since(c.shown) > publishes {
		for _, address := range answers {
			if !slices.Contains(ready, address.String()) {
				c.r.find("%s: %s answers %s, which is not among the endpoints in use: %v", time.Now().Format(time.TimeOnly),
					c.Name, address, ready)
			}
		}
	}
	all, heard, silent := map[string]contribution{}, 0, map[string]bool{}
	for _, other := range c.r.clusters {
		is, isSilent, certain := c.knows(other)
		switch {
		case !certain:
			return
		case isSilent:
			silent[other.Name] = true
		case other != c:
			heard++
		}
		if other == c || slices.Contains(limits.chosen, c.Name) {
			all[other.Name] = is
		}
	}
	if len(silent) > 1 && heard == 0 {
		return // it takes itself for cut off
	}
	c.r.Weighed++
	if want := inUse(c.Name, limits, all, silent); !maps.Equal(want, got) {
		c.r.find("%s: %s uses %v of %s, want %v of %+v, silent %v, %+v", time.Now().Format(time.TimeOnly), c.Name, got,
			placedName, want, all, silent, limits)
	}
}

// weighed asserts that the shares are right in each cluster once all is whole.
func (r *run) weighed() {
	for _, c := range r.clusters {
		before := r.Weighed
		if c.askPlaced(); r.Weighed == before {
			r.find("it is not certain what %s knows of %s although all is whole", c.Name, placedName)
		}
	}
}
