// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// zone is the DNS zone of Services in the clusterset.
const zone = "svc.clusterset.local"

// service describes a Service and its pods.
type service struct {
	namespace, name string
	ports           []corev1.ServicePort
	// change modifies the Service before it is created.
	change func(*corev1.Service)
	// annotations are exported with the service, in YAML without braces.
	annotations string
}

// port returns a port of a Service. Its pods listen on target.
func port(name string, protocol corev1.Protocol, number, target int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Protocol: protocol, Port: number, TargetPort: intstr.FromInt32(target)}
}

// http80 has the port of most Services in these tests.
var http80 = []corev1.ServicePort{port("http", corev1.ProtocolTCP, 80, 8080)}

// at returns the address at which clients reach a port of the clusterset's Service.
func (s service) at(port int) string {
	return fmt.Sprintf("%s.%s.%s:%d", s.name, s.namespace, zone, port)
}

// pods starts count pods of the Service, on the nodes of the cluster in turn.
func (c *cluster) pods(t testing.TB, s service, count int, serve ...string) []*pod {
	if len(serve) == 0 {
		serve = []string{"tcp:8080"}
	}
	made := make([]*pod, count)
	for i := range made {
		made[i] = c.pod(t, podSpec{
			namespace: s.namespace, name: fmt.Sprintf("%s-%d", s.name, i), app: s.name, node: i % len(c.nodes), serve: serve,
		})
	}
	return made
}

// serve creates the Service. It selects pods by its label.
func (c *cluster) serve(t testing.TB, s service) {
	object := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": s.name}, Ports: s.ports},
	}
	if s.change != nil {
		s.change(object)
	}
	_, err := c.CoreV1().Services(s.namespace).Create(t.Context(), object, metav1.CreateOptions{})
	must(t, err)
}

// export creates the Service and its ServiceExport.
func (c *cluster) export(t testing.TB, s service) {
	c.serve(t, s)
	c.apply(t, fmt.Sprintf("{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {namespace: %s, name: %s}, spec: {exportedAnnotations: {%s}}}",
		s.namespace, s.name, s.annotations))
}

// deploy starts pods of the Service and exports it.
func (c *cluster) deploy(t testing.TB, s service, count int, serve ...string) []*pod {
	made := c.pods(t, s, count, serve...)
	c.export(t, s)
	return made
}

// client starts a pod without a server.
func (c *cluster) client(t testing.TB, namespace string, node int) *pod {
	return c.pod(t, podSpec{namespace: namespace, name: fmt.Sprintf("client-%d", node), node: node})
}
