// SPDX-License-Identifier: Apache-2.0

package export

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// An Exposure is how clusters whose pods do not reach those of this cluster, because they are in another network, reach an
// exported service: a value of AnnotationExpose and of the controller's flag --expose.
type Exposure string

// Values of an Exposure.
const (
	// ExposeNone: clusters of other networks do not reach it.
	ExposeNone Exposure = "None"
	// ExposeNodePort: by a node port of each node that has a ready pod.
	ExposeNodePort Exposure = "NodePort"
	// ExposeLoadBalancer: by the addresses of the Service's load balancer.
	ExposeLoadBalancer Exposure = "LoadBalancer"
	// ExposeGateway: by the addresses of Gateways with a TCPRoute, UDPRoute or TLSRoute to the Service.
	ExposeGateway Exposure = "Gateway"
)

// ParseExposure returns the Exposure of a text, ExposeNone if it is empty.
func ParseExposure(text string) (Exposure, error) {
	exposure := cmp.Or(Exposure(text), ExposeNone)
	if all := []Exposure{ExposeNone, ExposeNodePort, ExposeLoadBalancer, ExposeGateway}; !slices.Contains(all, exposure) {
		return ExposeNone, fmt.Errorf("%.100q is not one of %s", text, all)
	}
	return exposure, nil
}

// settle is how long a node stays unready after it got its first ready pod: its kube-proxy serves the pod after about a second.
const settle = 2 * time.Second

// ErrPodsForbidden reports that the controller has no right to read pods, so that it does not know their host ports.
var ErrPodsForbidden = errors.New("set controller.readPods in the chart if it has a hostPort")

// readAgain is the delay before a pod is read again after a failure, and askAgain after ErrPodsForbidden.
const readAgain, askAgain = 10 * time.Second, 5 * time.Minute

// Exposure returns how an export is exposed, ExposeNone with an error if its annotation is not valid.
func (e Exporter) Exposure(serviceExport *v1beta1.ServiceExport) (Exposure, error) {
	return ParseExposure(cmp.Or(serviceExport.Annotations[AnnotationExpose], string(e.Expose)))
}

// hasLocalNodePorts reports whether each port of a Service has a node port on which a node serves only its own pods.
// Otherwise nodes forward connections to each other, so that no node could be unready.
func hasLocalNodePorts(service *corev1.Service) bool {
	return service.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal &&
		len(service.Spec.Ports) > 0 && !slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.NodePort == 0 })
}

// exposed returns the slices by which clusters of other networks reach an export, none if it is not exposed. An exposed
// export has at least one slice, so that these clusters know it.
func (e Exporter) exposed(view *View, serviceExport *v1beta1.ServiceExport, service *corev1.Service, found *problems) []Slice {
	object := "ServiceExport " + view.Service.String()
	refuse := func(format string, args ...any) {
		found.add(ReasonNotExposed, object, "clusters of other networks do not reach it: "+format, args...)
	}
	var all []Slice
	known := true
	exposure, err := e.Exposure(serviceExport)
	view.NodePorts = e.Expose == ExposeNodePort && exposure == ExposeNodePort && view.Spec.Type == v1beta1.ClusterSetIP &&
		len(service.Spec.Selector) > 0 && !hasLocalNodePorts(service)
	switch {
	case err != nil:
		refuse("annotation %s: %v", AnnotationExpose, err)
		return nil
	case exposure == ExposeNone:
		return nil
	case exposure == ExposeNodePort && e.Node == nil:
		known = false
	case view.Spec.Type == v1beta1.Headless && exposure == ExposeNodePort:
		var complete bool
		if all, complete = e.atNodes(view, refuse); !complete && len(all) == 0 && view.After != readAgain {
			return nil
		}
	case view.Spec.Type == v1beta1.Headless:
		refuse("Service %s is headless, and a %s has one address for all pods. Use a Service for each pod", view.Service.Name, exposure)
		return nil
	case exposure == ExposeLoadBalancer:
		balancer := Frontend{}
		for _, ingress := range service.Status.LoadBalancer.Ingress {
			if address := cmp.Or(ingress.IP, ingress.Hostname); address != "" { // the API allows entries with neither
				balancer.Addresses = append(balancer.Addresses, address)
			}
		}
		for _, port := range view.Spec.Ports {
			balancer.Targets = append(balancer.Targets, Target{Protocol: port.Protocol, Number: port.Number, Port: port.Number})
		}
		if all, known = e.frontends(view, balancer); known && len(all) == 0 {
			refuse("Service %s has no address of its IP families in status.loadBalancer. Make it a Service of type LoadBalancer, or wait for "+
				"the address", view.Service.Name)
		}
	case exposure == ExposeGateway:
		view.Memory.Names = []string{""}
		frontends, listed := e.Gateways(view.Service)
		all, known = e.frontends(view, frontends...)
		if known = known && listed; known && len(all) == 0 {
			refuse("no Gateway with an address accepted a TCPRoute, UDPRoute or TLSRoute to a port of Service %s. Create one in its namespace",
				view.Service.Name)
		}
	case hasLocalNodePorts(service):
		all = e.nodes(view, service, refuse)
	case e.NodePorts != nil && IsManaged(e.NodePorts):
		all = e.nodes(view, e.NodePorts, refuse)
	case !view.NodePorts:
		refuse("Service %s has no node port for each port with externalTrafficPolicy: Local. Set both, or the controller's flag "+
			"--expose=NodePort, which derives a Service for Services with a selector", view.Service.Name)
	case e.NodePorts != nil:
		refuse("Service %s, which the controller would derive, has another owner. Delete it", e.NodePorts.Name)
	}
	all = e.publish(view, exposure, all, found)
	if known {
		return all
	}
	if all = e.kept(view, all); !slices.ContainsFunc(all, func(s Slice) bool { return s.Exposed != "" && len(s.Endpoints) > 0 }) {
		refuse("the addresses of its nodes, load balancer or Gateways are not known yet. Allow the controller to list them, and make sure " +
			"that names resolve")
	}
	return all
}

// kept returns the published slices for clusters of other networks, if there are any, instead of all, because not all
// addresses are known. Except with node ports, their endpoints get the current conditions of the pods. Slices of the
// network that the cluster left stay, too: the clusters there have no others.
func (e Exporter) kept(view *View, all []Slice) (kept []Slice) {
	conditions := best(view)
	for _, published := range SlicesOf(e.Cluster, e.published) {
		decoded, err := readSnapshot(published)
		slice := decoded.Slice.Slice
		if err != nil || !IsManaged(published) || slice.Exposed == "" && slice.Network == e.Network {
			continue
		}
		reader := endpointReader{addressType: slice.AddressType, demoted: decoded.Slice.Demoted, found: &problems{}}
		slice.Name, slice.Clusters, slice.Endpoints = published.Name, view.Slices[0].Clusters, reader.read(published.Endpoints)
		if slice.Exposed != "" {
			all = nil
		}
		view.NodePorts = view.NodePorts || slice.Exposed == ExposeNodePort && e.NodePorts != nil
		for i := range slice.Endpoints {
			if slice.Exposed != "" && slice.Exposed != ExposeNodePort {
				slice.Endpoints[i].Conditions = conditions
			}
		}
		kept = append(kept, slice)
	}
	return append(kept, all...)
}

// publish completes slices for publication, and returns an empty slice for none. It leaves out addresses that are not valid.
func (e Exporter) publish(view *View, exposure Exposure, all []Slice, found *problems) []Slice {
	if len(all) == 0 {
		all = []Slice{{AddressType: view.Slices[0].AddressType}}
	}
	for i, each := range all {
		reader := endpointReader{addressType: each.AddressType, object: "ServiceExport " + view.Service.String(), found: found}
		all[i] = e.slice(view.Service, "exposed/"+cmp.Or(each.Name, strconv.Itoa(i)), each.AddressType, view.Slices[0].Clusters)
		all[i].Exposed, all[i].Targets, all[i].Endpoints = exposure, each.Targets, reader.read(each.Endpoints)
	}
	return all
}

// nodes returns slices with the nodes that have an endpoint of a view, each with the best conditions of its endpoints. A
// node that is not ready serves nothing.
func (e Exporter) nodes(view *View, service *corev1.Service, refuse func(format string, args ...any)) (all []Slice) {
	best := map[string]discoveryv1.EndpointConditions{}
	view.Memory.ReadySince = map[string]time.Time{}
	for _, slice := range view.Slices {
		for i := range slice.Endpoints {
			name, conditions := ptr.Deref(slice.Endpoints[i].NodeName, ""), slice.Endpoints[i].Conditions
			if ptr.Deref(conditions.Ready, false) && e.settles(view, name) {
				conditions = Conditions(false, false, false)
			}
			best[name] = better(best[name], conditions)
		}
	}
	var targets []Target
	for _, port := range service.Spec.Ports {
		targets = append(targets, Target{Protocol: cmp.Or(port.Protocol, corev1.ProtocolTCP), Number: port.Port, Port: port.NodePort})
	}
	var endpoints []discoveryv1.Endpoint
	for _, name := range slices.Sorted(maps.Keys(best)) {
		node, known := e.Node(name)
		if !known {
			continue
		}
		if len(node.Addresses) == 0 {
			refuse("node %s has no address of the type in the controller's flag --node-addresses. Annotate it with %s", name,
				AnnotationNodeAddress)
		}
		conditions := best[name]
		if !node.Ready {
			conditions = Conditions(false, false, false)
		}
		for _, address := range node.Addresses {
			endpoints = append(endpoints, discoveryv1.Endpoint{
				Addresses: []string{address}, Conditions: conditions, Zone: &node.Zone,
			})
		}
	}
	return slicesOf(view, targets, endpoints)
}

// settles reports whether a node got its first ready pod since the previous pass, or less than settle ago.
func (e Exporter) settles(view *View, name string) bool {
	since, known := e.Before.ReadySince[name]
	if !known && e.Before.ReadySince != nil {
		since = e.Now
	}
	view.Memory.ReadySince[name] = since
	left := settle - e.Now.Sub(since)
	view.After = max(view.After, left) // the pass that began a shorter wait has scheduled its end
	return left > 0
}

// better returns the conditions that are more useful to clients: ready, then serving.
func better(a, b discoveryv1.EndpointConditions) discoveryv1.EndpointConditions {
	if ptr.Deref(a.Ready, false) || !ptr.Deref(b.Ready, false) && ptr.Deref(a.Serving, false) {
		return a
	}
	return b
}

// slicesOf returns slices of at most maxEndpoints endpoints, for each family of the Service.
func slicesOf(view *View, targets []Target, endpoints []discoveryv1.Endpoint) (all []Slice) {
	for _, family := range view.Spec.IPFamilies {
		kind := discoveryv1.AddressType(family)
		of := slices.DeleteFunc(slices.Clone(endpoints), func(e discoveryv1.Endpoint) bool { return FamilyOf(e.Addresses[0]) != family })
		for part := range slices.Chunk(of, maxEndpoints) {
			all = append(all, Slice{AddressType: kind, Targets: targets, Endpoints: part})
		}
	}
	return all
}

// atNodes returns slices with the pods of a view that clients reach at addresses of their nodes, and whether none is refused.
func (e Exporter) atNodes(view *View, refuse func(format string, args ...any)) (all []Slice, complete bool) {
	complete = true
	for _, slice := range view.Slices {
		for _, endpoint := range slice.Endpoints {
			node, known := e.Node(ptr.Deref(endpoint.NodeName, ""))
			if !known {
				continue // its pods are deleted, too
			}
			address, targets, err := e.atNode(view, slice, endpoint, node)
			if err != nil {
				complete = false
				refuse("Service %s is headless, and %v. Or use a Service with node ports for each pod", view.Service.Name, err)
				continue
			}
			endpoint.Addresses = []string{address}
			name := fmt.Sprint(slice.Name, targets)
			at := slices.IndexFunc(all, func(s Slice) bool { return s.Name == name })
			if at < 0 {
				at, all = len(all), append(all, Slice{Name: name, AddressType: slice.AddressType, Targets: targets})
			}
			all[at].Endpoints = append(all[at].Endpoints, endpoint)
		}
	}
	return all, complete
}

// atNode returns the address and the ports by which clients reach a pod at its node: the pod's ports with hostNetwork,
// else a hostPort for each. A pod that cannot be read keeps its published ports.
func (e Exporter) atNode(view *View, slice Slice, endpoint discoveryv1.Endpoint, node Node) (_ string, targets []Target, _ error) {
	pod := ptr.Deref(endpoint.TargetRef, corev1.ObjectReference{})
	at := slices.IndexFunc(node.Addresses, func(a string) bool { return FamilyOf(a) == corev1.IPFamily(slice.AddressType) })
	switch {
	case at < 0:
		return "", nil, fmt.Errorf("the node of pod %s has no address. Annotate it with %s", pod.Name, AnnotationNodeAddress)
	case slices.Contains(node.Own, endpoint.Addresses[0]):
		return node.Addresses[at], slice.Targets, nil
	case pod.UID == "":
		return "", nil, fmt.Errorf("the endpoint %s is not of a pod", endpoint.Addresses[0])
	}
	ports, err := e.HostPorts(pod)
	if err != nil {
		view.After = readAgain
		if errors.Is(err, ErrPodsForbidden) {
			view.After = askAgain
		}
		isPod := func(of discoveryv1.Endpoint) bool { return of.TargetRef != nil && of.TargetRef.UID == pod.UID }
		for _, published := range e.published {
			if !IsExposed(published) || !slices.ContainsFunc(published.Endpoints, isPod) {
				continue
			}
			decoded, _ := readSnapshot(published)
			if decoded.Slice.Exposed == "" {
				continue // kept from another network, with the ports of the pod
			}
			if targets = ofPorts(decoded.Slice.Targets, view.Spec.Ports); len(targets) > 0 && len(targets) >= len(slice.Targets) {
				return node.Addresses[at], targets, nil
			}
		}
		return "", nil, err
	}
	for _, target := range slice.Targets {
		of := slices.IndexFunc(ports, func(p corev1.ContainerPort) bool {
			return p.HostPort > 0 && p.HostIP == "" && p.ContainerPort == target.Port && cmp.Or(p.Protocol, corev1.ProtocolTCP) == target.Protocol
		})
		if of >= 0 {
			target.Port = ports[of].HostPort
			targets = append(targets, target)
		}
	}
	if len(targets) == 0 || len(targets) < len(slice.Targets) {
		err = fmt.Errorf("pod %s has neither hostNetwork nor a hostPort, without hostIP, for each port", pod.Name)
	}
	return node.Addresses[at], targets, err
}

// best returns the best conditions of the endpoints of a view: see better.
func best(view *View) discoveryv1.EndpointConditions {
	conditions := Conditions(false, false, false)
	for _, slice := range view.Slices {
		for i := range slice.Endpoints {
			conditions = better(conditions, slice.Endpoints[i].Conditions)
		}
	}
	return conditions
}

// frontends returns slices with the addresses of the frontends of ports of the Service, which are ready while the cluster has a
// ready endpoint of the view, and whether all addresses are known.
func (e Exporter) frontends(view *View, frontends ...Frontend) (all []Slice, known bool) {
	conditions := best(view)
	known = true
	for _, frontend := range frontends {
		targets := ofPorts(frontend.Targets, view.Spec.Ports)
		if len(targets) == 0 {
			continue
		}
		var addresses []netip.Addr
		for _, text := range frontend.Addresses {
			if address, err := netip.ParseAddr(text); err == nil {
				addresses = append(addresses, address)
			} else {
				view.Memory.Names = append(view.Memory.Names, text)
				resolved, answered := e.Resolve(text)
				known = known && answered
				addresses = append(addresses, resolved...)
			}
		}
		slices.SortFunc(addresses, netip.Addr.Compare)
		var endpoints []discoveryv1.Endpoint
		for _, address := range slices.Compact(addresses) {
			endpoints = append(endpoints, discoveryv1.Endpoint{Addresses: []string{address.String()}, Conditions: conditions})
		}
		all = append(all, slicesOf(view, targets, endpoints)...)
	}
	return all, known
}
