// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// TestNodePorts: the Service with node ports has the pods and settings of the exported one, and keeps its ports.
func TestNodePorts(t *testing.T) {
	config := &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To(int32(60))}}
	observed := newObserved("east")
	observed.NodePortsFor = &corev1.Service{Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "web"}, SessionAffinity: corev1.ServiceAffinityClientIP, SessionAffinityConfig: config,
		PublishNotReadyAddresses: true, ExternalIPs: []string{"192.0.2.1"},
		// A cluster that becomes dual-stack does not add a family to it.
		IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicyPreferDualStack),
		Ports: []corev1.ServicePort{{Port: 80, NodePort: 30080}, {Port: 443}},
	}}
	created := Merge(observed, nil).NodePorts
	if created == nil || created.Name != export.NodePortServiceName(web) || created.Spec.SessionAffinity != corev1.ServiceAffinityClientIP ||
		*created.Spec.SessionAffinityConfig.ClientIP.TimeoutSeconds != 60 || !created.Spec.PublishNotReadyAddresses ||
		len(created.Spec.ExternalIPs) > 0 || created.Spec.Ports[0].NodePort != 0 ||
		*created.Spec.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack {
		t.Errorf("created: %v", created)
	}
	observed.NodePorts = created.DeepCopy()
	observed.NodePorts.Spec.Ports[0].NodePort = 31000
	if updated := Merge(observed, nil).NodePorts; updated.Spec.Ports[0].NodePort != 31000 || updated.Spec.Ports[1].NodePort != 0 {
		t.Errorf("updated: %v", updated.Spec.Ports)
	}
	observed.NodePorts.Labels = nil
	if got := Merge(observed, nil).NodePorts; got != nil {
		t.Errorf("of another owner: %v", got)
	}
}
