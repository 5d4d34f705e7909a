// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"maps"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/retry"

	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
	"github.com/clusterset-dns/clusterset-dns/test/sim/oracle"
)

// A cluster is one cluster of a run.
type cluster struct {
	*sim.Cluster
	r    *run
	load oracle.Cluster
	// revision is the revision up to which events were processed; had is the state before the unprocessed changes.
	revision int64
	changed  bool
	had      oracle.Objects
	copies   []*discoveryv1.EndpointSlice // of the placed service, see objects
	// away is set while the namespace is deleted; left are the members that have left.
	away bool
	left sets.Set[string]
	// since is the time when each other cluster last left or joined.
	since map[string]time.Time
	// late is the last time at which a fault kept the controller from following a member that left or joined.
	late time.Time
	down bool // whether DNS is down
	// placed is the configuration of the placed service.
	placed placed
	// nodes are the existing nodes, see networks.go. The map is replaced, never changed.
	nodes    map[string]oracle.Node
	lastNode byte // number of the last node
	// shown is when a slice of the placed service was last seen to change.
	shown time.Time
}

// A backup has the content of the API server, and the model of it.
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

// write changes a service of the cluster from one state to another.
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

// carryOut executes writes.
func (c *cluster) carryOut(writes ...oracle.Write) {
	for _, each := range writes {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(each.Object)
		c.Must(err)
		object, ctx := &unstructured.Unstructured{Object: content}, c.r.set.Context()
		resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
		client := c.Dynamic.Resource(resource).Namespace(object.GetNamespace())
		c.Must(retry.RetryOnConflict(retry.DefaultRetry, func() error { // controllers write, too
			before, err := client.Get(ctx, object.GetName(), metav1.GetOptions{})
			switch {
			case each.Delete:
				if err = client.Delete(ctx, object.GetName(), metav1.DeleteOptions{}); apierrors.IsNotFound(err) {
					return nil
				}
			case err == nil:
				object.SetResourceVersion(before.GetResourceVersion())
				_, err = client.Update(ctx, object, metav1.UpdateOptions{})
			default:
				_, err = client.Create(ctx, object, metav1.CreateOptions{})
			}
			return err
		}))
	}
}

// A way leads from the objects of a cluster to the answers of the same or another cluster.
type way struct{ from, to string }

// into returns the ways to the cluster, abroad the ways from it to other clusters, and ways both.
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

// join makes another cluster a member again.
func (c *cluster) join(other string) {
	c.r.set.Join(c.r.set.Pair(c.Name, other))
	c.left.Delete(other)
	c.since[other] = time.Now()
}

// backup returns a backup of the API server.
func (c *cluster) backup() backup {
	return backup{c.API.Backup(), maps.Clone(c.load.Services), c.nodes}
}

// restore restores a backup as etcd recommends, and ends connections normally or resets them. Administrators repeat
// their later decisions.
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

// lost reports whether a reader may have imported most services that the cluster no longer shows it: services of which
// the reader has copies, and services that it was shown before and may be about to write.
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

// shows returns the names of the services that the cluster exports to a reader.
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
