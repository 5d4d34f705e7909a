// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"maps"
	"slices"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

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
			if where, wrong := c.r.used[[2]string{other, one}]; wrong {
				c.r.find("%s: a slice in %s uses %s before %s, which was used before it in %s",
					time.Now().Format(time.TimeOnly), c.Name, one, other, where)
			}
			c.r.used[[2]string{one, other}] = c.Name
		}
	}
}

// publishes is more than the time between two answers of DNS while a service changes all the time.
const publishes = 200 * time.Millisecond

// askPlaced asserts of a cluster that it answers nothing from outside of the border, and, if it can write, that it answers
// what is in use, and uses something if there is anything.
func (c *cluster) askPlaced() {
	answers := c.ask(placedName).Addresses // none of a DNS that is down
	for _, address := range answers {
		if other := c.r.names[address.As4()[2]]; !c.r.limits.admits(c.Name, other) {
			c.r.find("%s: %s answers the address %s of %s: %+v", time.Now().Format(time.TimeOnly), c.Name, address, other, c.r.limits)
		}
	}
	if len(c.left) > 0 || c.away || !c.r.judge.ClearSince(c.Name, c.Name, time.Now().Add(-bound)) {
		return
	}
	var ready, demoted []string
	c.objects()
	for _, slice := range c.copies {
		used, left := conditions(slice)
		ready, demoted = append(ready, used...), append(demoted, left...)
	}
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
}

// weighed asserts that each cluster uses the endpoints that it is to use, once all is whole.
func (r *run) weighed() {
	all := map[string]placed{}
	for _, c := range r.clusters {
		all[c.Name] = c.placed
	}
	r.drain()
	for _, c := range r.clusters {
		seen := all
		if !slices.Contains(r.limits.chosen, c.Name) {
			seen = map[string]placed{c.Name: all[c.Name]}
		}
		got := map[string]int{}
		c.objects()
		for _, slice := range c.copies {
			if used, _ := conditions(slice); len(used) > 0 {
				got[slice.Labels[v1beta1.LabelSourceCluster]] += len(used)
			}
		}
		if want := inUse(c.Name, r.limits, seen); !maps.Equal(want, got) {
			r.find("%s: %s uses %v of %s, want %v of %+v, %+v", time.Now().Format(time.TimeOnly), c.Name, got, placedName, want, all,
				r.limits)
		}
	}
}
