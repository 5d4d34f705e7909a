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

// renode is a kind of event in schedules with networks: a node is added, removed or changed.
const renode = "a node changes"

var networkNames = []string{"", "a", "b"}

// network assigns the clusters of every third schedule to at least two networks, and adds changes of nodes. It has its
// own random numbers.
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

// judges has a judge for each cluster, by its name. The judge of the cluster at the end of a way judges the way.
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

// judge returns the judge of the cluster.
func (c *cluster) judge() *oracle.Judge { return c.r.judge[c.Name] }

// change reports new states of services of the cluster to all judges.
func (c *cluster) change(services ...oracle.Service) {
	for _, service := range services {
		for reader, judge := range c.r.judge {
			judge.Change(c.Name, c.seen(service, reader), time.Now())
		}
	}
}

// seen returns the state of a service of the cluster as a reader should see it.
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

// services returns the services of the cluster, sorted by name.
func (c *cluster) services() (all []oracle.Service) {
	for _, name := range slices.Sorted(maps.Keys(c.load.Services)) {
		all = append(all, c.load.Services[name])
	}
	return all
}

// enter puts the cluster into its network, if the schedule has networks, and creates the nodes. One of the nodes with
// pods of operations does not exist. A pod of the placed service has the address of its node.
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

// freshNode returns a node address that was never used before.
func (c *cluster) freshNode() netip.Addr {
	c.lastNode++
	return netip.AddrFrom4([4]byte{172, 16, byte(c.load.Number), c.lastNode})
}

// changeNode changes a node that runs pods of operations.
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

// writeNode writes a node, or deletes it if it should not exist.
func (c *cluster) writeNode(name string) {
	if node, exists := c.nodes[name]; exists {
		c.SetNode(name, node.Address.String(), node.Ready)
	} else {
		c.RemoveNode(name)
	}
}
