// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/network"
)

// balancer is a host beside the nodes of a cluster with the addresses of its load balancers and Gateways, an nginx that
// passes connections on, and a controller that configures it from the API and writes statuses.
type balancer struct {
	*network.Namespace
	cluster *cluster
	folder  string
	// pairs are two addresses for each Service of type LoadBalancer and each Gateway, by its name. They always work.
	pairs map[string][]netip.Addr
}

const nginxModule = "/usr/lib/nginx/modules/ngx_stream_module.so"

func gatewayResource(kind string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: strings.ToLower(kind) + "s"}
}

// gatewayCRD has the names and the version of upstream, but not the schema.
const gatewayCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[1]s.gateway.networking.k8s.io
  annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes-sigs/gateway-api"}
spec:
  group: gateway.networking.k8s.io
  scope: Namespaced
  names: {kind: %[2]s, plural: %[1]s}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// balance makes a balancer for the Services and Gateways of some names, and starts its nginx for what they are now.
func (c *cluster) balance(t testing.TB, names ...string) *balancer {
	t.Helper()
	l := &balancer{cluster: c, folder: t.TempDir(), pairs: map[string][]netip.Addr{}}
	base := c.reached[0].Masked().Addr().As4()
	base[2] = 200 // far from the router and the nodes
	own := netip.AddrFrom4(base)
	l.Namespace = c.attach(t, c.uplink, []netip.Addr{own})
	address := own
	for i := range 2 * len(names) {
		address = address.Next()
		must(t, l.AddAddress(address))
		must(t, c.uplink.Route(own, netip.PrefixFrom(address, address.BitLen())))
		l.pairs[names[i/2]] = append(l.pairs[names[i/2]], address)
	}
	config := filepath.Join(l.folder, "nginx.conf")
	must(t, os.WriteFile(config, []byte(l.configuration(l.reconcile(t, 0))), 0o600))
	c.bed.start(t, l.In("", process.Spec{
		Name: "nginx of " + c.Name(), Path: "nginx", LogFile: filepath.Join(l.folder, "nginx.log"),
		Args: []string{
			"-p", l.folder, "-c", config, "-e", "stderr", "-g", "daemon off; master_process off; pid nginx.pid;",
		},
	}))
	return l
}

// listener is a port of a Service or a Gateway, with the protocol as those of Gateways have it.
type listener struct {
	of, protocol string
	port         int32
}

// servers are the addresses to which connections to a listener go, by their server name, which is empty without TLS.
type servers map[listener]map[string][]string

// gatewayObject is what is read of a Gateway or a route.
type gatewayObject struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Listeners []struct {
			Name, Protocol string
			Port           int32
		}
		ParentRefs []struct{ Name, SectionName string }
		Hostnames  []string
		Rules      []struct {
			BackendRefs []struct {
				Name string
				Port int32
			}
		}
	}
}

// reconcile writes the statuses, and returns what nginx is to do. At 0, Services have both of their addresses, and later a
// name. Gateways have their first address, and at 2 the second.
func (l *balancer) reconcile(t testing.TB, at int) servers {
	t.Helper()
	all := servers{}
	services, err := l.cluster.CoreV1().Services(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for i := range services.Items {
		service := &services.Items[i]
		pair, ours := l.pairs[service.Name]
		if !ours || service.Spec.Type != corev1.ServiceTypeLoadBalancer {
			continue
		}
		for _, port := range service.Spec.Ports {
			var to []string
			for _, node := range l.cluster.nodes {
				to = append(to, fmt.Sprintf("%s:%d", node.addresses[0], port.NodePort))
			}
			all[listener{service.Name, string(port.Protocol), port.Port}] = map[string][]string{"": to}
		}
		ingress := []map[string]string{{"ip": pair[0].String()}, {"ip": pair[1].String()}}
		if at > 0 {
			ingress = []map[string]string{{"hostname": service.Name + ".lb.example"}}
		}
		l.setStatus(t, corev1.SchemeGroupVersion.WithResource("services"), service,
			map[string]any{"loadBalancer": map[string]any{"ingress": ingress}})
	}
	for _, gateway := range l.list(t, "Gateway") {
		l.setStatus(t, gatewayResource("Gateway"), &gateway, map[string]any{"addresses": []map[string]string{
			{"type": "IPAddress", "value": l.pairs[gateway.Name][at/2].String()},
		}})
		for _, each := range gateway.Spec.Listeners {
			names := map[string][]string{}
			all[listener{gateway.Name, each.Protocol, each.Port}] = names
			for _, route := range l.list(t, each.Protocol+"Route") {
				if parent := route.Spec.ParentRefs[0]; parent.Name != gateway.Name || parent.SectionName != each.Name {
					continue
				}
				backend := route.Spec.Rules[0].BackendRefs[0]
				to := l.pods(t, route.Namespace, backend.Name, backend.Port)
				for _, name := range append(route.Spec.Hostnames, "")[:max(1, len(route.Spec.Hostnames))] {
					names[name] = to
				}
				l.setStatus(t, gatewayResource(each.Protocol+"Route"), &route, map[string]any{"parents": []map[string]any{{
					"parentRef":      map[string]string{"name": gateway.Name, "sectionName": each.Name},
					"controllerName": "example.org/nginx",
					"conditions": []metav1.Condition{{
						Type: "Accepted", Status: metav1.ConditionTrue, Reason: "Accepted", LastTransitionTime: metav1.Now(),
					}},
				}}})
			}
		}
	}
	return all
}

func (l *balancer) list(t testing.TB, kind string) []gatewayObject {
	t.Helper()
	list, err := l.cluster.Dynamic().Resource(gatewayResource(kind)).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	text, err := list.MarshalJSON()
	must(t, err)
	var decoded struct{ Items []gatewayObject }
	must(t, json.Unmarshal(text, &decoded))
	return decoded.Items
}

// pods returns where the pods behind a port of a Service listen.
func (l *balancer) pods(t testing.TB, namespace, name string, port int32) (to []string) {
	t.Helper()
	service, err := l.cluster.CoreV1().Services(namespace).Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	pods, err := l.cluster.CoreV1().Pods(namespace).List(t.Context(),
		metav1.ListOptions{LabelSelector: labels.FormatLabels(service.Spec.Selector)})
	must(t, err)
	at := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == port })
	for _, pod := range pods.Items {
		to = append(to, fmt.Sprintf("%s:%d", pod.Status.PodIP, service.Spec.Ports[at].TargetPort.IntVal))
	}
	return to
}

// setStatus writes fields of a status.
func (l *balancer) setStatus(t testing.TB, resource schema.GroupVersionResource, of metav1.Object, status any) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"status": status})
	must(t, err)
	_, err = l.cluster.Dynamic().Resource(resource).Namespace(of.GetNamespace()).Patch(t.Context(), of.GetName(),
		types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	must(t, err)
}

// configuration is that of nginx, which logs the address of each connection that ended. A backend that failed is tried
// again at once: how long a load balancer takes to find it healthy is not what is tested.
func (l *balancer) configuration(all servers) string {
	var text strings.Builder
	fmt.Fprintf(&text, "load_module %s;\nevents {}\nstream {\nlog_format address $server_addr;\n"+
		"access_log connections.log address;\n", nginxModule)
	i := 0
	for at, names := range all {
		i++
		routes := ""
		for j, name := range slices.Sorted(maps.Keys(names)) {
			routes += fmt.Sprintf("%s to%d_%d;\n", map[bool]string{true: "default", false: name}[name == ""], i, j)
			fmt.Fprintf(&text, "upstream to%d_%d {\nserver %s max_fails=0;\n}\n", i, j,
				strings.Join(names[name], " max_fails=0;\nserver "))
		}
		fmt.Fprintf(&text, "map $ssl_preread_server_name $to%d {\n%s}\nserver {\nproxy_pass $to%[1]d;\n", i, routes)
		for _, address := range l.pairs[at.of] {
			fmt.Fprintf(&text, "listen %s:%d%s;\n", address, at.port, map[string]string{"UDP": " udp"}[at.protocol])
		}
		text.WriteString(map[string]string{"UDP": "proxy_responses 1;\n", "TLS": "ssl_preread on;\n"}[at.protocol] + "}\n")
	}
	return text.String() + "}\n"
}

// connections counts the connections to each address of a Service or Gateway that end while a function runs.
func (l *balancer) connections(t testing.TB, name string, do func()) map[netip.Addr]int {
	t.Helper()
	file := filepath.Join(l.folder, "connections.log")
	must(t, os.Truncate(file, 0))
	do()
	text, err := os.ReadFile(file)
	must(t, err)
	counts := map[netip.Addr]int{}
	for _, address := range l.pairs[name] {
		counts[address] = strings.Count(string(text), address.String()+"\n")
	}
	return counts
}
