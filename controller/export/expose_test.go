// SPDX-License-Identifier: Apache-2.0

package export

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// slicesText is each slice's targets, then its endpoints with their zones, "!" before those that are not ready and
// "~" before those that only serve.
func slicesText(all ...Slice) string {
	var texts []string
	for _, slice := range all {
		for _, target := range slice.Targets {
			texts = append(texts, fmt.Sprintf("%s/%d->%d", target.Protocol, target.Number, target.Port))
		}
		for _, endpoint := range slice.Endpoints {
			mark := ""
			switch {
			case *endpoint.Conditions.Ready:
			case *endpoint.Conditions.Serving:
				mark = "~"
			default:
				mark = "!"
			}
			text := mark + endpoint.Addresses[0]
			if endpoint.Zone != nil {
				text += "@" + *endpoint.Zone
			}
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, " ")
}

// isExposed checks the slices of a view for other networks, if it is exposed, and a part of its problems.
func isExposed(t *testing.T, view *View, found []Problem, exposed bool, want, problem string) {
	t.Helper()
	if got := slicesText(view.Exposed...); got != want || (len(view.Exposed) > 0) != exposed {
		t.Errorf("got %q in %d slices, want %q", got, len(view.Exposed), want)
	}
	if got := strings.Join(texts(found), "\n"); problem == "" && got != "" || !strings.Contains(got, problem) {
		t.Errorf("got the problems %q, want %q", got, problem)
	}
}

func TestExposed(t *testing.T) {
	nodes := map[string]Node{
		"a":    {Addresses: []string{"192.0.2.1", "2001:db8::1"}, Own: []string{"192.0.2.1"}, Zone: "z1", Ready: true},
		"b":    {Addresses: []string{"192.0.2.2"}, Own: []string{"10.0.0.2"}, Ready: true},
		"down": {Addresses: []string{"192.0.2.3"}, Ready: false},
		"none": {Own: []string{"192.0.2.4"}, Ready: true},
		"lies": {Addresses: []string{"127.0.0.1"}, Own: []string{"192.0.2.5"}, Ready: true},
	}
	on := func(node, address string, ready, serving, terminating bool) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{
			Addresses: []string{address}, NodeName: &node, Conditions: Conditions(ready, serving, terminating),
		}
	}
	pods := []discoveryv1.Endpoint{
		on("a", "10.1.0.1", false, true, true), on("a", "10.1.0.2", true, true, false), on("b", "10.1.0.3", false, true, true),
		on("down", "10.1.0.4", true, true, false), on("unknown", "10.1.0.5", true, true, false),
	}
	local := func(ports ...int32) func(*corev1.Service) {
		return func(s *corev1.Service) {
			s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
			for i, port := range ports {
				s.Spec.Ports[i].NodePort = port
			}
		}
	}
	selects := func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "web"} }
	headless := func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone }
	behind := func(s *corev1.Service) {
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "203.0.113.7"}, {Hostname: "lb.example.org"}, {IP: "203.0.113.7"}}
	}
	for name, test := range map[string]struct {
		flag             Exposure
		annotation       string
		service          []func(*corev1.Service)
		ports            string
		endpoints        []discoveryv1.Endpoint
		derived          bool // a Service with node ports exists, made by the controller unless foreign
		foreign, unknown bool // unknown: nodes, names and Gateways are not known
		gateways         []Frontend
		want, problem    string
		derives, missing bool
	}{
		"a wrong annotation":     {flag: ExposeNodePort, annotation: "nodeport", ports: "80/TCP", endpoints: pods, missing: true, problem: `"nodeport" is not one of`},
		"its own node ports":     {flag: ExposeNodePort, service: []func(*corev1.Service){selects, local(30001, 30002)}, ports: "http:80/TCP dns:53/UDP", endpoints: pods, want: "TCP/80->30001 UDP/53->30002 192.0.2.1@z1 ~192.0.2.2 !192.0.2.3"},
		"one port without":       {flag: ExposeNodePort, service: []func(*corev1.Service){selects, local(30001)}, ports: "http:80/TCP dns:53/UDP", endpoints: pods, derives: true},
		"derived":                {flag: ExposeNodePort, service: []func(*corev1.Service){selects}, ports: "80/TCP", endpoints: pods, derived: true, derives: true, want: "TCP/80->31000 192.0.2.1@z1 ~192.0.2.2 !192.0.2.3"},
		"its name is taken":      {flag: ExposeNodePort, service: []func(*corev1.Service){selects}, ports: "80/TCP", endpoints: pods, derived: true, foreign: true, derives: true, problem: "has another owner"},
		"any node's":             {flag: ExposeNodePort, service: []func(*corev1.Service){selects, func(s *corev1.Service) { s.Spec.Ports[0].NodePort = 30001 }}, ports: "80/TCP", endpoints: pods, derives: true},
		"no selector":            {flag: ExposeNodePort, ports: "80/TCP", endpoints: pods, problem: "no node port for each port"},
		"only by annotation":     {annotation: "NodePort", service: []func(*corev1.Service){selects}, ports: "80/TCP", endpoints: pods, problem: "no node port for each port"},
		"nodes are not known":    {flag: ExposeNodePort, unknown: true, service: []func(*corev1.Service){selects, local(30001)}, ports: "80/TCP", endpoints: pods, problem: "nodes, load balancer or Gateways are not known"},
		"headless":               {flag: ExposeNodePort, service: []func(*corev1.Service){headless}, ports: "80/TCP", endpoints: pods, missing: true, problem: "is headless, and the endpoint 10.1.0.1 is not of a pod. Or use a Service with node ports for each pod"},
		"headless, without pods": {flag: ExposeNodePort, service: []func(*corev1.Service){headless}, ports: "80/TCP"},
		"a node's own address":   {flag: ExposeNodePort, service: []func(*corev1.Service){selects, local(30001)}, ports: "80/TCP", endpoints: []discoveryv1.Endpoint{on("a", "10.1.0.1", true, true, false), on("lies", "10.1.0.2", true, true, false)}, want: "TCP/80->30001 192.0.2.1@z1", problem: "127.0.0.1 is not the address"},
		"no address of the type": {flag: ExposeNodePort, service: []func(*corev1.Service){selects, local(30001)}, ports: "80/TCP", endpoints: []discoveryv1.Endpoint{on("a", "10.1.0.1", true, true, false), on("none", "10.1.0.2", true, true, false)}, want: "TCP/80->30001 192.0.2.1@z1", problem: "node none has no address"},
		"a load balancer":        {annotation: "LoadBalancer", service: []func(*corev1.Service){behind}, ports: "80/TCP", endpoints: pods, want: "TCP/80->80 198.51.100.1 203.0.113.7"},
		"one that serves":        {annotation: "LoadBalancer", service: []func(*corev1.Service){behind}, ports: "80/TCP", endpoints: pods[:1], want: "TCP/80->80 ~198.51.100.1 ~203.0.113.7"},
		"one of another family":  {annotation: "LoadBalancer", service: []func(*corev1.Service){behind, func(s *corev1.Service) { s.Spec.IPFamilies[0] = corev1.IPv6Protocol }}, ports: "80/TCP", problem: "no address of its IP families in status.loadBalancer"},
		"its name is not known":  {annotation: "LoadBalancer", unknown: true, service: []func(*corev1.Service){behind}, ports: "80/TCP", endpoints: pods, want: "TCP/80->80 203.0.113.7"},
		"several routes":         {annotation: "Gateway", gateways: []Frontend{{[]string{"203.0.113.9"}, []Target{{"TCP", 9, 9}, {"TCP", 80, 443}, {"TCP", 80, 443}}}}, ports: "80/TCP", endpoints: pods, want: "TCP/80->443 203.0.113.9"},
		"one to another port":    {annotation: "Gateway", gateways: []Frontend{{[]string{"203.0.113.9"}, []Target{{"TCP", 81, 443}}}}, ports: "80/TCP", endpoints: pods, problem: "no Gateway with an address"},
		"only a name, unknown": {annotation: "LoadBalancer", unknown: true, service: []func(*corev1.Service){func(s *corev1.Service) {
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: "lb"}}
		}}, ports: "80/TCP", endpoints: pods, problem: "nodes, load balancer or Gateways are not known"},
		"headless by a balancer": {annotation: "LoadBalancer", service: []func(*corev1.Service){headless}, ports: "80/TCP", endpoints: pods, missing: true, problem: "one address for all pods"},
	} {
		t.Run(name, func(t *testing.T) {
			from := Exporter{
				Cluster: "east", Network: "a", Expose: test.flag, Now: time.Unix(1, 0),
				Node:     func(name string) (Node, bool) { node, known := nodes[name]; return node, known },
				Resolve:  func(string) ([]netip.Addr, bool) { return []netip.Addr{netip.MustParseAddr("198.51.100.1")}, true },
				Gateways: func(types.NamespacedName) ([]Frontend, bool) { return test.gateways, !test.unknown },
			}
			if test.unknown {
				from.Node, from.Resolve = nil, func(string) ([]netip.Addr, bool) { return nil, false }
			}
			serviceExport := newExport(func(e *v1beta1.ServiceExport) {
				if test.annotation != "" {
					e.Annotations = map[string]string{AnnotationExpose: test.annotation}
				}
			})
			service := newService(test.ports, test.service...)
			if test.derived {
				from.NodePorts = newService(test.ports, local(31000))
				if !test.foreign {
					Mark(from.NodePorts)
				}
			}
			slice := newSlice("web-x", "8080/TCP", "")
			slice.Endpoints = test.endpoints
			view, found, invalid := FromService(from, serviceExport, service, []*discoveryv1.EndpointSlice{slice})
			if invalid != nil {
				t.Fatal(invalid)
			}
			isExposed(t, view, found, !test.missing, test.want, test.problem)
			if view.NodePorts != test.derives {
				t.Errorf("derives a Service: %v", view.NodePorts)
			}
		})
	}
}

// TestHostPorts: pods of headless services are reached at the hostPorts of their node, each for itself. Without any such pod, the
// service is not exposed, unless a pod cannot be read now.
func TestHostPorts(t *testing.T) {
	node := Node{Addresses: []string{"192.0.2.1"}, Own: []string{"10.0.0.1"}, Ready: true}
	pods := map[string][]corev1.ContainerPort{
		"all": {{ContainerPort: 8080, HostPort: 80}, {ContainerPort: 53, HostPort: 5300, Protocol: "UDP"}, {ContainerPort: 9000}},
		"any": {{ContainerPort: 53, HostPort: 5300, Protocol: "UDP"}, {ContainerPort: 8080, HostPort: 80}},
		"one": {{ContainerPort: 8080, HostPort: 80}, {ContainerPort: 53, Protocol: "UDP"}},
		"tcp": {{ContainerPort: 8080, HostPort: 80}, {ContainerPort: 53, HostPort: 5300}},
	}
	at := func(port int) string { return fmt.Sprintf("TCP/80->%d UDP/53->5300 ", port) }
	const none, away = "has neither hostNetwork nor", "is away"
	for name, test := range map[string]struct {
		pods, ports, want, problem string
	}{
		"the same ports":            {"all any", "http:80/TCP dns:53/UDP", at(80) + "192.0.2.1 !192.0.2.1", ""},
		"another protocol":          {"tcp", "http:80/TCP dns:53/UDP", "", none},
		"unknown":                   {"new", "http:80/TCP dns:53/UDP", "", away},
		"forbidden":                 {"denied", "http:80/TCP dns:53/UDP", "", "set controller.readPods"},
		"unknown and published":     {"old all", "http:80/TCP dns:53/UDP", at(30) + "192.0.2.1 " + at(80) + "!192.0.2.1", ""},
		"unknown, and no such port": {"old", "http:81/TCP", "", away},
		"its node has no address":   {"bare all", "http:80/TCP dns:53/UDP", at(80) + "!192.0.2.1", "node of pod bare has no address"},
	} {
		t.Run(name, func(t *testing.T) {
			from := Exporter{
				Cluster: "east", Expose: ExposeNodePort,
				Node: func(name string) (Node, bool) {
					if name == "bare" {
						return Node{}, true
					}
					return node, name != "gone"
				},
				HostPorts: func(pod corev1.ObjectReference) ([]corev1.ContainerPort, error) {
					if ports := pods[string(pod.UID)]; ports != nil {
						return ports, nil
					}
					if pod.UID == "denied" {
						return nil, ErrPodsForbidden
					}
					return nil, errors.New("the pod is away")
				},
			}
			slice := newSlice("web-x", "http:8080/TCP dns:53/UDP", "")
			for i, pod := range strings.Fields(test.pods) {
				slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
					Addresses: []string{fmt.Sprintf("10.1.0.%d", i)}, NodeName: &pod, Conditions: Conditions(i == 0, false, false),
					TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: pod, UID: types.UID(pod)},
				})
			}
			// The import has the names of another export for the ports.
			before := newSlice("before", "theirs:30/TCP dns:5300/UDP", "192.0.2.1")
			Mark(before)
			before.Annotations = (&View{Cluster: "east"}).Annotations(&Slice{Name: "before", Exposed: ExposeNodePort, Targets: []Target{
				{Protocol: "TCP", Number: 80, Port: 30}, {Protocol: "UDP", Number: 53, Port: 5300}, {Protocol: "TCP", Number: 9, Port: 9},
			}}, nil)
			before.Labels[LabelExposed] = "web"
			before.Endpoints[0].TargetRef = &corev1.ObjectReference{UID: "old"}
			service := newService(test.ports, func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone })
			// In the previous network of the cluster, clients connect to the ports of pods.
			former := before.DeepCopy()
			former.Annotations = (&View{Cluster: "east"}).Annotations(&Slice{Name: "former", Network: "blue", Targets: []Target{{"TCP", 80, 8080}}}, nil)
			view, found, _ := FromService(from, newExport(), service, []*discoveryv1.EndpointSlice{slice, former, before})
			isExposed(t, view, found, test.want != "" || test.problem == away, test.want, test.problem)
			if again := strings.Contains(test.pods, "new") || strings.Contains(test.pods, "old") || test.pods == "denied"; (view.After > 0) != again {
				t.Errorf("to be read again after %s", view.After)
			}
		})
	}
}

// TestSettles: a node becomes ready two seconds after it got its first ready pod, and unready at once.
func TestSettles(t *testing.T) {
	pods := newSlice("web-x", "8080/TCP", "")
	service := newService("80/TCP", func(s *corev1.Service) {
		s.Spec.ExternalTrafficPolicy, s.Spec.Ports[0].NodePort = corev1.ServiceExternalTrafficPolicyLocal, 30001
	})
	from := Exporter{
		Cluster: "east", Expose: ExposeNodePort,
		Node: func(name string) (Node, bool) {
			return Node{Addresses: []string{name}, Ready: true}, true
		},
	}
	for i, step := range []struct {
		at          float64 // in seconds
		ready, want string  // addresses of nodes, with "+" for another pod that terminates
		after       float64
	}{
		{0, "192.0.2.1", "192.0.2.1", 0},
		{0, "", "", 0},
		{0, "192.0.2.1", "!192.0.2.1", 2},
		{1, "192.0.2.1 192.0.2.2", "!192.0.2.1 !192.0.2.2", 2},
		{2, "192.0.2.1 192.0.2.2", "192.0.2.1 !192.0.2.2", 1},
		{3, "192.0.2.1 192.0.2.2", "192.0.2.1 192.0.2.2", 0},
		{4, "192.0.2.1", "192.0.2.1", 0},
		{5, "192.0.2.1 192.0.2.2+", "192.0.2.1 ~192.0.2.2", 2},
		{7, "192.0.2.1 192.0.2.2+", "192.0.2.1 192.0.2.2", 0},
		{7, "restart 192.0.2.1 192.0.2.2 192.0.2.3", "192.0.2.1 192.0.2.2 192.0.2.3", 0},
	} {
		from.Now = time.Unix(1, 0).Add(time.Duration(step.at * float64(time.Second)))
		pods.Endpoints = nil
		for _, text := range strings.Fields(step.ready) {
			if text == "restart" {
				from.Before = Memory{}
				continue
			}
			name, terminates := strings.CutSuffix(text, "+")
			pods.Endpoints = append(pods.Endpoints, discoveryv1.Endpoint{
				Addresses: []string{"10.1.0.1"}, NodeName: &name, Conditions: Conditions(true, true, false),
			})
			if terminates {
				pods.Endpoints = append(pods.Endpoints, discoveryv1.Endpoint{
					Addresses: []string{"10.1.0.2"}, NodeName: &name, Conditions: Conditions(false, true, true),
				})
			}
		}
		view, _, _ := FromService(from, newExport(), service, []*discoveryv1.EndpointSlice{pods})
		if got := strings.TrimPrefix(slicesText(view.Exposed...), "TCP/80->30001 "); strings.ReplaceAll(got, "@", "") != step.want || view.After.Seconds() != step.after {
			t.Errorf("%d: got %q, again after %s", i, got, view.After)
		}
		from.Before = view.Memory
	}
}

// balanced returns the published slices of an export behind a load balancer with two addresses, in a cluster of a network.
func balanced(network string) (published []*discoveryv1.EndpointSlice) {
	from := Exporter{Cluster: "east", Network: network, Expose: ExposeLoadBalancer}
	service := newService("80/TCP", func(s *corev1.Service) {
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "203.0.113.7"}, {IP: "203.0.113.8"}}
	})
	view, _, _ := FromService(from, newExport(), service, []*discoveryv1.EndpointSlice{newSlice("web-x", "8080/TCP", "10.1.0.1")})
	exposed := *view
	exposed.Slices = view.Exposed
	return append(publish(view), publish(&exposed)...)
}

// TestKept: while addresses for clusters of other networks are unknown, the published slices for them stay, with the Service whose
// node ports they have, and so do the slices of the previous network. Conditions of pods, except with node ports, and the cluster
// selector of the export still change.
func TestKept(t *testing.T) {
	const pods, balancer, fresh = "TCP/80->8080 10.1.0.1@zone-a ", "TCP/80->80 203.0.113.7 203.0.113.8", "TCP/80->80 203.0.113.9"
	// Other writers may set any label and annotation on slices of the Service, and change snapshots of published slices.
	tampered := balanced("red")
	tampered = append(tampered, tampered[1].DeepCopy())
	tampered[1].Annotations[AnnotationSnapshot] = strings.Replace(tampered[1].Annotations[AnnotationSnapshot], `{"name":"`, `{"name":"other-`, 1)
	delete(tampered[2].Labels, LabelSliceManagedBy)
	nodes := balanced("red")
	nodes[1].Endpoints[1].Conditions = Conditions(false, false, false)
	nodes[1].Annotations[AnnotationSnapshot] = strings.Replace(nodes[1].Annotations[AnnotationSnapshot], "LoadBalancer", "NodePort", 1)
	demoted := balanced("blue")
	demoted[0].Endpoints[0].Conditions = Conditions(false, true, true)
	demoted[0].Annotations[AnnotationSnapshot] = strings.Replace(demoted[0].Annotations[AnnotationSnapshot], `"slice":{`, `"slice":{"demoted":[0],`, 1)
	for name, test := range map[string]struct {
		cluster   string
		expose    Exposure
		endpoints string
		published []*discoveryv1.EndpointSlice
		want      string
	}{
		"a name is unknown":       {"east", ExposeLoadBalancer, "10.1.0.1", balanced("red"), balancer},
		"without ready pods":      {"east", ExposeLoadBalancer, "!10.1.0.1", balanced("red"), "TCP/80->80 !203.0.113.7 !203.0.113.8"},
		"nodes are":               {"east", ExposeNodePort, "!10.1.0.1", nodes, "TCP/80->80 203.0.113.7 !203.0.113.8"},
		"nodes were exposed":      {"east", ExposeLoadBalancer, "10.1.0.1", nodes, "TCP/80->80 203.0.113.7 !203.0.113.8"},
		"Gateways are":            {"east", ExposeGateway, "10.1.0.1", balanced("red"), balancer},
		"after a move":            {"east", ExposeLoadBalancer, "!10.1.0.1", demoted, pods + "TCP/80->80 !203.0.113.7 !203.0.113.8"},
		"and nothing was exposed": {"east", ExposeLoadBalancer, "10.1.0.1", balanced("blue")[:1], pods + fresh},
		"and others write slices": {"east", ExposeLoadBalancer, "10.1.0.1", tampered, balancer},
		"of another cluster":      {"west", ExposeLoadBalancer, "10.1.0.1", balanced("red"), fresh},
	} {
		from := Exporter{
			Cluster: test.cluster, Network: "red", Expose: test.expose, Resolve: func(string) ([]netip.Addr, bool) { return nil, false },
			Gateways: func(types.NamespacedName) ([]Frontend, bool) { return nil, false }, NodePorts: newService("80/TCP"),
		}
		service := newService("80/TCP", func(s *corev1.Service) {
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "203.0.113.9"}, {Hostname: "lb.example.org"}}
		})
		all := append([]*discoveryv1.EndpointSlice{newSlice("web-x", "8080/TCP", test.endpoints)}, test.published...)
		view, _, _ := FromService(from, newExport(chosenBy("north")), service, all)
		if got := slicesText(view.Exposed...); got != test.want || slices.ContainsFunc(view.Exposed, func(s Slice) bool { return s.Clusters != "north" }) {
			t.Errorf("%s: got %s, want %s, in %+v", name, got, test.want, view.Exposed)
		}
		if view.NodePorts != strings.HasPrefix(name, "nodes") {
			t.Errorf("%s: the Service with node ports stays: %t", name, view.NodePorts)
		}
		if slices.ContainsFunc(view.Exposed, func(s Slice) bool { return strings.HasPrefix(s.Name, "other") }) {
			t.Errorf("%s: the snapshot has the name in %+v", name, view.Exposed)
		}
	}
}

// TestNetworks: a reader in the same network reads the slices of pods, a reader in another network the exposed slices,
// and none reads both.
func TestNetworks(t *testing.T) {
	published := balanced("a")
	published[1].Labels[LabelExposed] = published[1].Labels[LabelService]
	delete(published[1].Labels, LabelService)
	read := func(network string) (*View, []Problem) {
		owns := func(address string, exposed bool) bool { return exposed && address == "203.0.113.8" }
		view, found, _ := FromSlices(Source{Cluster: "east", Network: network, Owns: owns}, web, published, nil)
		return view, found
	}
	const pods, balancer = "TCP/80->8080 10.1.0.1@zone-a", "TCP/80->80 203.0.113.7"
	for network, want := range map[string]string{"a": pods, "b": balancer, "": balancer} {
		if got, _ := read(network); slicesText(got.Slices...) != want {
			t.Errorf("network %q: got %s, want %s", network, slicesText(got.Slices...), want)
		}
	}
	if _, found := read("b"); len(found) != 1 || !strings.Contains(found[0].Message, "203.0.113.8") {
		t.Errorf("got %+v, want the address that is left out", found)
	}
	published = published[:1]
	if got, found := read("b"); got != nil || len(found) != 1 || found[0].Reason != ReasonNotExposed {
		t.Errorf("not exposed: got %v, %v", got, found)
	}
	absent, _, _ := FromService(Exporter{Cluster: "east", Network: "a", Expose: ExposeLoadBalancer}, newExport(), nil, nil)
	exposed := *absent
	exposed.Slices = absent.Exposed
	published = append(publish(absent), publish(&exposed)...)
	for _, network := range []string{"a", "b"} {
		if got, found := read(network); got == nil || !got.Absent() || len(found) > 0 {
			t.Errorf("network %q, without its Service: got %v, %v", network, got, found)
		}
	}
}

// TestNetworkChanges: while an export changes to another network, slice by slice and in any order, readers in the old, the new
// and a third network see endpoints at each moment.
func TestNetworkChanges(t *testing.T) {
	for _, change := range [][2]string{{"", "b"}, {"b", ""}, {"b", "c"}} {
		for _, reversed := range []bool{false, true} {
			now, next := map[string]*discoveryv1.EndpointSlice{}, balanced(change[1])
			if reversed {
				slices.Reverse(next)
			}
			for _, slice := range balanced(change[0]) {
				now[slice.Name] = slice
			}
			for _, slice := range next { // those that are not wanted are deleted at the end
				now[slice.Name] = slice
				for _, reader := range []string{"", "b", "d"} {
					if got, _, _ := FromSlices(Source{Cluster: "east", Network: reader}, web, slices.Collect(maps.Values(now)), nil); got == nil {
						t.Errorf("from %q to %q: network %q sees nothing after %s", change[0], change[1], reader, slice.Name)
					}
				}
			}
		}
	}
}
