// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/test/sim/oracle"
)

// renode is the kind of events in schedules with networks: a node is added, removed or changed.
const renode = "a node changes"

var networkNames = []string{"", "a", "b"}

// network puts the clusters of every third schedule in networks, at least two, and adds what changes there. It has
// random numbers of its own.
func (s *Schedule) network() {
	if s.Seed%3 > 0 {
		return
	}
	random := rand.New(rand.NewPCG(s.Seed, 7))
	for range s.Clusters {
		s.Networks = append(s.Networks, networkNames[random.IntN(len(networkNames))])
	}
	if len(slices.Compact(slices.Clone(s.Networks))) == 1 {
		s.Networks[0] = networkNames[(1+slices.Index(networkNames, s.Networks[0]))%len(networkNames)]
	}
	s.some(renode, random)
}

// judges are those of what each cluster sees, by its name. They agree on each way: its end judges it.
type judges map[string]*oracle.Judge

func (j judges) Block(ways ...way) {
	for _, each := range ways {
		j[each.to].Block(each.from)
	}
}

func (j judges) Clear(now time.Time, ways ...way) {
	for _, each := range ways {
		j[each.to].Clear(now, each.from)
	}
}

// judge is the one of what the cluster sees.
func (c *cluster) judge() *oracle.Judge { return c.r.judge[c.Name] }

// change tells the judges which states services of the cluster got.
func (c *cluster) change(services ...oracle.Service) {
	for _, service := range services {
		for reader, judge := range c.r.judge {
			judge.Change(c.Name, c.seen(service, reader), time.Now())
		}
	}
}

// seen is what a reader is to see of a service of the cluster.
func (c *cluster) seen(service oracle.Service, reader string) oracle.Service {
	if c.r.networks[c.Name] != c.r.networks[reader] {
		exposed := true
		if service.Present {
			service.Endpoints, exposed = oracle.Exposed(service.Headless, service.Endpoints, c.nodes)
		}
		service.Exported = service.Exported && exposed
	}
	return service
}

// services are those of the cluster, by name.
func (c *cluster) services() (all []oracle.Service) {
	for _, name := range slices.Sorted(maps.Keys(c.load.Services)) {
		all = append(all, c.load.Services[name])
	}
	return all
}

// enter puts the cluster in its network, if the schedule has networks, and creates the nodes: one of those that operations
// have pods on does not exist, and those of the pods of other services have the addresses of these.
func (c *cluster) enter(s Schedule) {
	if s.Networks == nil {
		return
	}
	c.Options.Network, c.Options.Expose = s.Networks[c.load.Number], string(export.ExposeNodePort)
	c.nodes = map[string]oracle.Node{}
	for i := range oracle.Nodes - 1 {
		c.nodes[fmt.Sprintf("n%d", i)] = oracle.Node{Address: c.freshNode(), Ready: true}
	}
	for i := range placedEndpoints {
		c.nodes[fmt.Sprintf("p%d", i)] = oracle.Node{Address: placedAddress(c.load.Number, i), Ready: true}
	}
	for name := range c.nodes {
		c.writeNode(name)
	}
}

// freshNode is an address that no node ever had.
func (c *cluster) freshNode() netip.Addr {
	c.lastNode++
	return netip.AddrFrom4([4]byte{172, 16, byte(c.load.Number), c.lastNode})
}

// changeNode changes one of the nodes of the pods that operations change.
func (c *cluster) changeNode(random *rand.Rand) {
	name := fmt.Sprintf("n%d", random.IntN(oracle.Nodes))
	node, exists := c.nodes[name]
	c.nodes = maps.Clone(c.nodes)
	switch action := random.IntN(5); {
	case !exists, action == 0:
		c.nodes[name] = oracle.Node{Address: c.freshNode(), Ready: true}
	case action == 1:
		delete(c.nodes, name)
	default:
		c.nodes[name] = oracle.Node{Address: node.Address, Ready: !node.Ready}
	}
	c.r.note("%s: node %s was %v and is %v", c.Name, name, node, c.nodes[name])
	c.r.Changes += len(c.r.services)
	c.writeNode(name)
	c.change(c.services()...)
}

// writeNode writes a node, or deletes it if it is not to exist.
func (c *cluster) writeNode(name string) {
	if node, exists := c.nodes[name]; exists {
		c.SetNode(name, node.Address.String(), node.Ready)
	} else {
		c.RemoveNode(name)
	}
}
