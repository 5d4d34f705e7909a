// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/coredns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/manifest"
)

// corednsNeeds is what the plugin multicluster reads, as well as the stock plugin with the option.
var corednsNeeds = []manifest.Right{
	{Verb: "list", Group: "multicluster.x-k8s.io", Resource: "serviceimports"},
	{Verb: "watch", Group: "multicluster.x-k8s.io", Resource: "serviceimports"},
	{Verb: "list", Group: "discovery.k8s.io", Resource: "endpointslices"},
	{Verb: "watch", Group: "discovery.k8s.io", Resource: "endpointslices"},
	{Verb: "list", Resource: "namespaces"},
	{Verb: "watch", Resource: "namespaces"},
}

// containerOf is the container of CoreDNS, nil if the Deployment has none.
func containerOf(deployment *appsv1.Deployment) *corev1.Container {
	containers := deployment.Spec.Template.Spec.Containers
	at := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == coredns.Name })
	switch {
	case at >= 0:
		return &containers[at]
	case len(containers) == 1:
		return &containers[0]
	}
	return nil
}

// pendingRollout returns what a rollout is waiting for, or an empty text.
func pendingRollout(deployment *appsv1.Deployment) string {
	want := int32(1)
	if deployment.Spec.Replicas != nil {
		want = *deployment.Spec.Replicas
	}
	status := deployment.Status
	switch {
	case status.ObservedGeneration < deployment.Generation:
		return "Deployment " + coredns.Name + " has not been observed yet"
	case status.UpdatedReplicas < want:
		return fmt.Sprintf("%d of %d new pods of Deployment %s are not created yet", want-status.UpdatedReplicas, want,
			coredns.Name)
	case status.AvailableReplicas < want:
		return fmt.Sprintf("%d of %d pods of Deployment %s are not available yet", want-status.AvailableReplicas,
			want, coredns.Name)
	case status.Replicas > status.UpdatedReplicas:
		return fmt.Sprintf("%d old pods of Deployment %s still exist", status.Replicas-status.UpdatedReplicas, coredns.Name)
	}
	return ""
}

// accountOf is the service account that CoreDNS runs as.
func accountOf(deployment *appsv1.Deployment) string {
	if account := deployment.Spec.Template.Spec.ServiceAccountName; account != "" {
		return account
	}
	return "default"
}
