// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
	"github.com/clusterset-dns/clusterset-dns/test/sim/oracle"
)

// look judges what clients see at this moment.
func (r *run) look() {
	r.looked = time.Now()
	r.drain()
	for _, c := range r.clusters {
		if c.hindered() {
			c.late = time.Now()
		}
		changes := len(c.left) > 0 || c.away || time.Since(c.late) < bound
		if changes {
			c.judge().Forget()
		}
		for _, name := range r.services {
			if c.down {
				break
			}
			for _, wrong := range c.judge().Reply(c.ask(name)) {
				r.find("%s", wrong)
			}
		}
		c.askPlaced()
		if changes {
			c.judge().Forget()
			continue
		}
		o := c.objects()
		for _, name := range r.services {
			for _, wrong := range c.judge().Copies(name, o.Held[name], time.Now()) {
				r.find("%s", wrong)
			}
			r.demoted(c, name, o.Held[name])
		}
	}
}

// hindered reports whether a fault may keep the controller from learning that a member left or joined, or from writing:
// objects of the member then reappear late.
func (c *cluster) hindered() bool {
	for _, what := range []string{"API ", "controller "} {
		began, busy := c.r.busy[what+c.Name]
		for _, changed := range c.since {
			if busy && changed.After(began.Add(-10*time.Second)) {
				return true
			}
		}
	}
	return false
}

// demoted asserts that the endpoints of a long unreachable cluster are not ready if a reachable cluster with the same
// ports has ready endpoints.
func (r *run) demoted(c *cluster, name string, held map[string][]oracle.Endpoint) {
	ready := func(cluster string) bool {
		return slices.ContainsFunc(held[cluster], func(e oracle.Endpoint) bool { return e.Ready })
	}
	long := time.Now().Add(-bound)
	for _, source := range r.clusters {
		since := r.silent[way{source.Name, c.Name}]
		if joined := c.since[source.Name]; !since.IsZero() && joined.After(since) {
			since = joined // a member that has just joined is not considered unreachable at once
		}
		if since.IsZero() || since.After(long) || !ready(source.Name) || !c.judge().ClearSince(c.Name, long) {
			continue
		}
		for _, other := range r.clusters {
			heard := other != c || len(r.clusters) == 2
			if other != source && heard && ready(other.Name) &&
				c.judge().ClearSince(other.Name, long.Add(-bound)) &&
				slices.Equal(other.load.Services[name].Ports, source.load.Services[name].Ports) {
				r.find("%s, copies of %s in %s: nothing was heard of %s since %s, %s has ready endpoints, and those of %s are not demoted: %v", time.Now().Format(time.TimeOnly), name, c.Name, source.Name, since.Format(time.TimeOnly), other.Name, source.Name, held)
			}
		}
	}
}

// ask queries the DNS of the cluster.
func (c *cluster) ask(name string) oracle.Reply {
	reply := oracle.Reply{Name: name, At: time.Now(), Code: dns.RcodeServerFailure}
	if !c.down {
		reply.Code, reply.Addresses = c.DNS.Ask(name, sim.Namespace)
	}
	return reply
}

// drain counts the controllers' writes, and reports them to the judge.
func (r *run) drain() {
	for _, c := range r.clusters {
		var events []apiserver.Event
		events, c.revision = c.API.After(c.revision)
		for _, each := range events {
			c.see(each)
		}
	}
}

// see counts an event, and reports it to the judge.
func (c *cluster) see(e apiserver.Event) {
	if e.Resource.Resource == "leases" {
		return
	}
	if c.changed = true; c.r.calm {
		c.r.touched = append(c.r.touched,
			fmt.Sprintf("%s: %s %s %s", c.Name, e.Type, e.Resource.Resource, e.Object.(metav1.Object).GetName()))
	}
	derived := false
	switch object := e.Object.(type) {
	case *discoveryv1.EndpointSlice:
		from := object.Labels[v1beta1.LabelSourceCluster]
		if object.Labels[v1beta1.LabelServiceName] == placedName {
			c.seePlaced(object, e.Type == watch.Deleted)
			c.r.Writes++
			return
		}
		if derived = from != ""; derived && e.Type != watch.Deleted {
			var addresses []netip.Addr
			for _, endpoint := range object.Endpoints {
				addresses = append(addresses, oracle.Addresses(endpoint.Addresses)...)
			}
			c.judge().SeesCopy(from, object.Labels[v1beta1.LabelServiceName], addresses)
		}
	case *unstructured.Unstructured:
		if derived = e.Resource.Resource == "serviceimports"; derived {
			c.seeImport(object, e.Type == watch.Deleted, e.At)
		}
	case *corev1.Service:
		derived = object.Labels[managedBy] != ""
	}
	if derived {
		c.r.Writes++
	}
}

func (c *cluster) seeImport(object *unstructured.Unstructured, gone bool, at time.Time) {
	if object.GetName() == placedName {
		return
	}
	ips, _, _ := unstructured.NestedStringSlice(object.Object, "spec", "ips")
	if gone {
		ips = nil
	}
	c.judge().SeesIPs(object.GetName(), oracle.Addresses(ips), at)
}

// seeAll reports all imports to the judge after a restore.
func (c *cluster) seeAll() {
	c.changed = true
	imports := c.objects().Imports
	for _, name := range c.r.services {
		var ips []string
		if imported := imports[name]; imported != nil {
			ips = imported.Spec.IPs
		}
		c.judge().SeesIPs(name, oracle.Addresses(ips), time.Now())
	}
}

// objects returns the cluster's objects, and sets copies. drain must be called first.
func (c *cluster) objects() oracle.Objects {
	if !c.changed {
		return c.had
	}
	all := apiserver.List[*discoveryv1.EndpointSlice](c.API, discoveryv1.Resource("endpointslices"))
	o, err := oracle.Read(typed[v1beta1.ServiceExport](c, "serviceexports"), typed[v1beta1.ServiceImport](c, "serviceimports"), all)
	c.Must(err)
	c.had, c.changed = o, false
	c.copies = slices.DeleteFunc(all, func(s *discoveryv1.EndpointSlice) bool { return s.Labels[v1beta1.LabelServiceName] != placedName })
	return o
}

// typed returns the objects of a resource.
func typed[T any](c *cluster, resource string) (all []*T) {
	for _, each := range apiserver.List[*unstructured.Unstructured](c.API, v1beta1.Resource(resource)) {
		object := new(T)
		c.Must(runtime.DefaultUnstructuredConverter.FromUnstructured(each.Object, object))
		all = append(all, object)
	}
	return all
}

// converge waits until all clusters have the correct result.
func (r *run) converge(when string, patience time.Duration) bool {
	end := time.Now().Add(patience)
	for {
		r.until(time.Now().Add(5 * time.Second))
		r.drain()
		var err error
		for _, c := range r.clusters {
			if err == nil {
				err = c.judge().Check(r.services, c.objects(), c.ask)
			}
		}
		if err == nil {
			r.note("all clusters have and answer the same %s", when)
			return true
		}
		if time.Now().After(end) {
			r.find("not within %s %s: %v", patience, when, err)
			return false
		}
	}
}
