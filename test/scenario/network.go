// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// SetNode creates or changes a node with an address and readiness.
func (c *Cluster) SetNode(name, address string, ready bool) {
	c.Put("{apiVersion: v1, kind: Node, metadata: {name: " + name + "}}")
	c.nodes = append(c.nodes, name)
	status := map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}[ready]
	_, err := c.Kube.CoreV1().Nodes().PatchStatus(c.set.Context(), name, fmt.Appendf(nil,
		`{"status":{"addresses":[{"type":"InternalIP","address":%q}],"conditions":[{"type":"Ready","status":%q}]}}`, address, status))
	c.set.must(err)
}

// expose exports a service with endpoints on nodes, with this value of the annotation expose.
func (c *Cluster) expose(service, fields, way string, endpoints ...string) {
	c.PutService(service, "{selector: {app: x}, ipFamilyPolicy: SingleStack, "+fields+" ports: [{name: http, port: 80, targetPort: 8080}]}")
	c.SetEndpoints(service, endpoints...)
	c.AnnotateExport(service, export.AnnotationExpose, cmp.Or(way, "null"))
}

// targets waits until the endpoints of a source cluster are imported with this port.
func (c *Cluster) targets(service, source string, want func() int32) {
	c.set.Eventually("ports of "+source+" in "+c.Name, func() error {
		for _, slice := range c.Slices(service) {
			if slice.Labels[export.LabelSourceCluster] == source && len(slice.Endpoints) > 0 && (len(slice.Ports) != 1 || ptr.Deref(slice.Ports[0].Port, 0) != want()) {
				return fmt.Errorf("slice %s has %v, want %d", slice.Name, slice.Ports, want())
			}
		}
		return nil
	})
}

// nodePort returns a function that returns the node port of a Service, 0 if there is no such Service.
func (c *Cluster) nodePort(name string) func() int32 {
	return func() int32 {
		service, err := c.services.Get(c.set.Context(), name, metav1.GetOptions{})
		c.set.must(ignoreNotFound(err))
		if err != nil {
			return 0
		}
		return service.Spec.Ports[0].NodePort
	}
}

// networks: a cluster in another network imports nodes with node ports; nodes without a ready pod are not ready. A
// cluster in the same network imports pods. The exporting cluster itself still imports its pods.
func networks(s *Set, east, west, north *Cluster) {
	for i, c := range s.clusters {
		c.Stop()
		c.Options.Expose = string(export.ExposeNodePort)
		for number, name := range []string{"one", "two"} {
			c.PutNode(name, c.Name+"-a")
			c.SetNode(name, fmt.Sprintf("192.0.2.%d%d", i+1, number+1), true)
		}
	}
	west.Options.Network = "islands"
	for i, c := range s.clusters {
		c.Start()
		c.expose("web", "", "", fmt.Sprintf("10.%d.0.10@one", 64+i))
	}
	const (
		inEast = "east/10.64.0.10 north/10.66.0.10 west/192.0.2.21 -> VIP"
		inWest = "east/192.0.2.11 north/192.0.2.31 west/10.65.0.10 -> VIP"
	)
	s.Expect(web(inEast), east, north)
	s.Expect(web(inWest), west)
	derived := export.NodePortServiceName(s.key("web"))
	west.targets("web", "east", east.nodePort(derived))
	east.targets("web", "west", west.nodePort(derived))
	north.targets("web", "east", func() int32 { return 8080 })
	s.rests(east)

	// The Service with node ports is deleted, and recreated with another port.
	east.DeleteService(derived)
	west.targets("web", "east", east.nodePort(derived))

	// A Service whose node ports serve only local pods needs no second Service.
	east.expose("web", "type: NodePort, externalTrafficPolicy: Local,", "", "10.64.0.10@one")
	s.Expect(web(inWest), west)
	west.targets("web", "east", east.nodePort("web"))
	s.Eventually("the other Service is deleted", func() error {
		_, err := east.services.Get(s.Context(), derived, metav1.GetOptions{})
		if err == nil {
			return fmt.Errorf("%s is there", derived)
		}
		return ignoreNotFound(err)
	})

	// The only exporter of a service moves to the reader's network, and back. The import stays.
	east.expose("moved", "", "", "10.64.0.20@one")
	s.Expect(View{"moved": "east/192.0.2.11 -> VIP"}, west)
	before := west.Import("moved").UID
	for _, at := range [][3]string{
		{"islands", "10.64.0.20", "east/10.64.0.10 north/192.0.2.31 west/10.65.0.10 -> VIP"}, {"", "192.0.2.11", inWest},
	} {
		east.Options.Network = at[0]
		east.Restart()
		s.Expect(View{"moved": "east/" + at[1] + " -> VIP", "web": at[2]}, west)
	}
	if got := west.Import("moved").UID; got != before {
		s.Error("the import was created anew while the exporter moved")
	}

	// While west cannot read another cluster, it keeps the endpoints from that cluster.
	s.cut(Pair{west, east})
	west.Options.Network = ""
	west.Restart()
	s.Expect(web("east/192.0.2.11 north/10.66.0.10 west/10.65.0.10 -> VIP"), west)
	s.restore(Pair{west, east})
	s.Expect(web("east/10.64.0.10 north/10.66.0.10 west/10.65.0.10 -> VIP"))
}

// otherNetwork: a headless service is exposed by its pods' nodes only if the pods use the host network. Clusters in
// another network import the addresses of a load balancer, even those of a host name. They are ready while a pod is
// ready. A restart while the name cannot be resolved changes nothing.
func otherNetwork(s *Set, east, west *Cluster) {
	for _, c := range s.clusters {
		c.Stop()
		c.Options.Expose = string(export.ExposeNodePort)
	}
	east.SetNode("one", "192.0.2.11", true)
	west.Options.Network = "islands"
	var addresses atomic.Value
	addresses.Store("198.51.100.1")
	east.Options.Lookup = func(_ context.Context, name string, kind uint16) ([]netip.Addr, time.Duration, error) {
		text := addresses.Load().(string)
		switch {
		case name != "lb.example.org" || text == "":
			return nil, 0, errors.New("no such host")
		case kind != dns.TypeA:
			return nil, 10 * time.Second, nil
		}
		return []netip.Addr{netip.MustParseAddr(text)}, 10 * time.Second, nil
	}
	for _, c := range s.clusters {
		c.Start()
	}
	east.expose("db", "clusterIP: None,", "", "10.64.0.10@one")
	s.Expect(View{"db": "east/10.64.0.10 -> 10.64.0.10"}, east)
	s.Expect(View{"db": gone}, west)
	east.problems("east", export.ReasonNotExposed, 1)
	east.expose("db", "clusterIP: None,", "", "192.0.2.11@one")
	s.Expect(View{"db": "east/192.0.2.11 -> 192.0.2.11"})
	east.problems("east", export.ReasonNotExposed, 0)

	// If the controller may read pods, a pod with a hostPort is exposed by it, even if another pod cannot be read.
	east.SetNode("two", "192.0.2.12", true)
	east.Put(`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: pods}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: pods},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: pods},
  subjects: [{kind: ServiceAccount, name: clusterset-controller, namespace: clusterset-dns}]}
---
{apiVersion: v1, kind: Pod, metadata: {name: db-0}, spec: {containers: [{name: db, image: db, ports: [{containerPort: 8080, hostPort: 3000}]}]}}`)
	pod, err := east.Kube.CoreV1().Pods(s.namespace).Get(s.Context(), "db-0", metav1.GetOptions{})
	s.must(err)
	endpoint := func(address, node, pod string, uid types.UID) string {
		return fmt.Sprintf("{addresses: [%s], nodeName: %s, targetRef: {kind: Pod, namespace: %s, name: %s, uid: %s}, conditions: {ready: true}}",
			address, node, s.namespace, pod, uid)
	}
	east.Put(fmt.Sprintf("{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, metadata: {name: db-ipv4}, endpoints: [%s, %s]}",
		endpoint("10.64.0.10", "one", "db-0", pod.UID), endpoint("10.64.0.11", "two", "db-1", "unknown")))
	s.Expect(View{"db": "east/192.0.2.11 -> 192.0.2.11"}, west)
	west.targets("db", "east", func() int32 { return 3000 })
	east.problems("east", export.ReasonNotExposed, 1)

	east.expose("web", "type: LoadBalancer,", "LoadBalancer", "10.64.0.10@one")
	s.Expect(web("-> VIP"), west)
	east.Patch(corev1.SchemeGroupVersion.WithResource("services"), "web",
		`{"status":{"loadBalancer":{"ingress":[{"ip":"203.0.113.7"},{"hostname":"lb.example.org"}]}}}`, "status")
	s.Expect(web("east/198.51.100.1 east/203.0.113.7 -> VIP"), west)
	s.Expect(web("east/10.64.0.10 -> VIP"), east)
	west.targets("web", "east", func() int32 { return 80 })
	addresses.Store("198.51.100.2")
	s.Expect(web("east/198.51.100.2 east/203.0.113.7 -> VIP"), west)
	addresses.Store("")
	s.Holds(time.Minute, web("east/198.51.100.2 east/203.0.113.7 -> VIP"), west)
	s.rests(east)
}
