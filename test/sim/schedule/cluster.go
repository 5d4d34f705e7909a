// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"context"
	"maps"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
	"github.com/clusterset-dns/clusterset-dns/test/sim/oracle/judge"
	"github.com/clusterset-dns/clusterset-dns/test/sim/oracle/outcome"
	"github.com/clusterset-dns/clusterset-dns/test/sim/oracle/truth"
	"github.com/clusterset-dns/clusterset-dns/test/sim/oracle/workload"
)

// A cluster is one of a run.
type cluster struct {
	*sim.Cluster
	r    *run
	t    *testing.T
	load workload.Cluster
	// revision is the one up to which events were looked at, and had what there was before the events that changed it.
	revision int64
	changed  bool
	had      outcome.Objects
	// away tells that the namespace is deleted, and left which members are.
	away bool
	left map[string]*unstructured.Unstructured // their Secrets
	// since is when each other cluster left or joined last.
	since map[string]time.Time
	// late is when its controller was last hindered in following such a change.
	late time.Time
	down bool // DNS
	// placed is what is decided about the service of that name. contribution is what the API server has of it unless
	// that is unread, and contributed are the times when it changed.
	placed       placed
	contribution contribution
	contributed  []time.Time
	unread       bool
	// nodes are those that exist: see networks.go. The map never changes.
	nodes    map[string]truth.Node
	lastNode byte // number of the last node
	// ever are all endpoints that services had, by name, with those by which they were exposed.
	ever map[string][]truth.Endpoint
	// shown is when a slice of that service was last seen to change.
	shown time.Time
}

// A backup is one of the API server, and of what is known of it.
type backup struct {
	server   *apiserver.Backup
	services map[string]workload.Service
	nodes    map[string]truth.Node
	network  string
}

func newCluster(t *testing.T, r *run, c *sim.Cluster, number int) *cluster {
	return &cluster{
		Cluster: c, r: r, t: t, left: map[string]*unstructured.Unstructured{}, since: map[string]time.Time{},
		ever: map[string][]truth.Endpoint{},
		load: workload.Cluster{Number: number}, revision: c.API.Revision(), changed: true,
	}
}

var versions = map[string]schema.GroupVersion{
	"namespaces":     {Version: "v1"},
	"secrets":        {Version: "v1"},
	"services":       {Version: "v1"},
	"endpointslices": {Group: "discovery.k8s.io", Version: "v1"},
	"serviceexports": {Group: "multicluster.x-k8s.io", Version: "v1beta1"},
	"serviceimports": {Group: "multicluster.x-k8s.io", Version: "v1beta1"},
}

func (c *cluster) in(resource, namespace string) dynamic.ResourceInterface {
	client := c.Dynamic.Resource(versions[resource].WithResource(resource))
	if namespace == "" {
		return client
	}
	return client.Namespace(namespace)
}

// must ends the run if an administrator cannot do something.
func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("%s: %v", c.Name, err)
	}
}

// write brings the cluster from one state of a service to the next.
func (c *cluster) write(from, to workload.Service) {
	c.t.Helper()
	for _, next := range workload.Path(from, to) {
		for _, each := range workload.Writes(from, next, sim.Namespace) {
			c.carryOut(each)
		}
		c.change(next)
		c.load.Services[next.Name], from = next, next
	}
}

// carryOut writes or deletes an object.
func (c *cluster) carryOut(write workload.Write) {
	c.t.Helper()
	if write.Delete {
		c.Delete(write.Object)
		return
	}
	c.Put(write.Object)
}

// ways are all that begin or end in the cluster; into those that end there.
func (c *cluster) ways() []judge.Way   { return judge.Of(c.Name, c.r.names) }
func (c *cluster) into() []judge.Way   { return judge.Into(c.Name, c.r.names) }
func (c *cluster) abroad() []judge.Way { return judge.Abroad(c.Name, c.r.names) }

// leave ends the membership of another cluster.
func (c *cluster) leave(other string) {
	secrets := c.in("secrets", member.DefaultNamespace)
	secret, err := secrets.Get(context.Background(), "member-"+other, metav1.GetOptions{})
	c.must(err)
	secret.SetResourceVersion("")
	secret.SetUID("")
	c.must(secrets.Delete(context.Background(), secret.GetName(), metav1.DeleteOptions{}))
	c.left[other], c.since[other] = secret, time.Now()
}

// join undoes leave.
func (c *cluster) join(other string) {
	if _, err := c.in("secrets", member.DefaultNamespace).Create(context.Background(), c.left[other],
		metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		c.must(err)
	}
	delete(c.left, other)
	c.since[other] = time.Now()
}

// backup keeps what the API server holds.
func (c *cluster) backup() backup {
	return backup{c.API.Backup(), maps.Clone(c.load.Services), c.nodes, c.r.networks[c.Name]}
}

// restore goes back to a backup, as etcd recommends, and ends connections in order or resets them.
// What administrators decided since is decided again.
func (c *cluster) restore(kept backup, reset bool) {
	ways := c.ways()
	c.r.judge.Block(ways...)
	defer func() { c.r.judge.Clear(time.Now(), ways...) }()
	c.r.drain()
	c.nodes, c.load.Services = kept.nodes, maps.Clone(kept.services)
	network := c.r.networks[c.Name]
	c.r.networks[c.Name] = kept.network // so say its slices, until its controller wrote them anew
	if reset {
		c.StopAPI()
	}
	c.API.RestoreWithBump(kept.server)
	if reset {
		c.StartAPI()
	}
	for other := range c.left {
		c.must(
			c.in("secrets", member.DefaultNamespace).Delete(context.Background(), "member-"+other,
				metav1.DeleteOptions{}))
	}
	c.change(c.services()...)
	c.r.networks[c.Name] = network
	c.change(c.services()...)
	c.judge().Forget()
	c.revision = c.API.Revision()
	c.unread = true
	c.seeAll()
}
