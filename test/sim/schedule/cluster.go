// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"maps"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
	"github.com/clusterset-dns/clusterset-dns/test/sim/oracle"
)

// A cluster is one of a run.
type cluster struct {
	*sim.Cluster
	r    *run
	load oracle.Cluster
	// revision is the one up to which events were looked at, and had what there was before the events that changed it.
	revision int64
	changed  bool
	had      oracle.Objects
	copies   []*discoveryv1.EndpointSlice // see objects
	// away tells that the namespace is deleted, and left which members are.
	away bool
	left sets.Set[string]
	// since is when each other cluster left or joined last.
	since map[string]time.Time
	// late is when its controller was last hindered in following such a change.
	late time.Time
	down bool // DNS
	// placed is what is decided about the service of that name.
	placed placed
	// nodes are those that exist: see networks.go. The map never changes.
	nodes    map[string]oracle.Node
	lastNode byte // number of the last node
	// shown is when a slice of that service was last seen to change.
	shown time.Time
}

// A backup is one of the API server, and of what is known of it.
type backup struct {
	server   *apiserver.Backup
	services map[string]oracle.Service
	nodes    map[string]oracle.Node
}

func newCluster(r *run, c *sim.Cluster, number int) *cluster {
	return &cluster{
		Cluster: c, r: r, left: sets.Set[string]{}, since: map[string]time.Time{},
		load: oracle.Cluster{Number: number}, revision: c.API.Revision(), changed: true,
	}
}

// write brings the cluster from one state of a service to the next.
func (c *cluster) write(from, to oracle.Service) {
	for _, next := range oracle.Path(from, to) {
		if !from.Exported {
			next.Created = time.Now().Truncate(time.Second)
		}
		c.carryOut(oracle.Writes(from, next, sim.Namespace)...)
		c.change(next)
		c.load.Services[next.Name], from = next, next
	}
}

// carryOut writes or deletes objects.
func (c *cluster) carryOut(writes ...oracle.Write) {
	for _, each := range writes {
		if each.Delete {
			c.API.Delete(each.Object)
		} else {
			c.Must(c.API.Write(each.Object))
		}
	}
}

// A way leads from the objects of one cluster to the answers of another, or of the same.
type way struct{ from, to string }

// into are the ways that end in the cluster, abroad those from it to others, and ways both.
func (c *cluster) into() (ways []way) {
	for _, from := range c.r.names {
		ways = append(ways, way{from, c.Name})
	}
	return ways
}

func (c *cluster) abroad() (ways []way) {
	for _, to := range c.r.names {
		if to != c.Name {
			ways = append(ways, way{c.Name, to})
		}
	}
	return ways
}

func (c *cluster) ways() []way { return append(c.into(), c.abroad()...) }

// leave ends the membership of another cluster.
func (c *cluster) leave(other string) {
	c.r.set.Leave(c.r.set.Pair(c.Name, other))
	c.left.Insert(other)
	c.since[other] = time.Now()
}

// join undoes leave.
func (c *cluster) join(other string) {
	c.r.set.Join(c.r.set.Pair(c.Name, other))
	c.left.Delete(other)
	c.since[other] = time.Now()
}

// backup keeps what the API server holds.
func (c *cluster) backup() backup {
	return backup{c.API.Backup(), maps.Clone(c.load.Services), c.nodes}
}

// restore goes back to a backup, as etcd recommends, and ends connections in order or resets them.
// What administrators decided since is decided again.
func (c *cluster) restore(kept backup, reset bool) {
	ways := c.ways()
	c.r.judge.Block(ways...)
	defer func() { c.r.judge.Clear(time.Now(), ways...) }()
	c.r.drain()
	shown := map[string]sets.Set[string]{}
	for _, reader := range c.r.names {
		shown[reader] = c.shows(reader)
	}
	c.nodes, c.load.Services = kept.nodes, maps.Clone(kept.services)
	if reset {
		c.StopAPI()
	}
	c.API.Restore(kept.server, true)
	if reset {
		c.StartAPI()
	}
	for other := range c.left {
		c.r.set.Leave(c.r.set.Pair(c.Name, other))
	}
	c.change(c.services()...)
	c.r.hold(c.abroad(), shown)
	c.judge().Forget()
	c.revision = c.API.Revision()
	c.seeAll()
}

// lost tells whether a reader may have imported services of which the cluster shows it few now: those that it holds, and
// those that it was shown before, which it may be about to write.
func (c *cluster) lost(reader *cluster, before sets.Set[string]) bool {
	shown, held := c.shows(reader.Name), sets.New[string]()
	for name, from := range reader.objects().Held {
		if len(from[c.Name]) > 0 {
			held.Insert(name)
		}
	}
	kept, gone := held.Intersection(shown).Len(), held.Union(before).Difference(shown).Len()
	return liveness.LostMost(kept+gone, kept)
}

// shows are the names of the services that the cluster exports for a reader.
func (c *cluster) shows(reader string) sets.Set[string] {
	names := sets.New[string]()
	if !c.away {
		names.Insert(placedName)
	}
	for name, service := range c.load.Services {
		if is := c.seen(service, reader); is.Present && is.Exported {
			names.Insert(name)
		}
	}
	return names
}
