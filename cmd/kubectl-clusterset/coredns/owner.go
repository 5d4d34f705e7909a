// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An Owner is what writes the Deployment or the Corefile of a cluster's CoreDNS, and reverts changes of others, or what
// answers in the place of CoreDNS as kubeadm installs it.
type Owner struct {
	// Name is that of the owner, for a sentence such as "Argo CD manages CoreDNS".
	Name string
	// Instead says how its users change the Corefile.
	Instead string
}

const (
	custom = "forward the zone with a key `clusterset.server` in ConfigMap kube-system/coredns-custom"
	source = "change the Corefile in the source of the "
)

// owners are recognized by a label or an annotation of CoreDNS; an empty value stands for any. More specific ones come
// first.
var owners = []struct {
	key, value string
	Owner
}{
	{"eks.amazonaws.com/component", "", Owner{"Amazon EKS", "forward the zone in the configuration of the add-on (`corefile`)"}},
	{"kubernetes.azure.com/managedby", "", Owner{"AKS", custom}},
	{"argocd.argoproj.io/instance", "", Owner{"Argo CD", source + "application"}},
	{"argocd.argoproj.io/tracking-id", "", Owner{"Argo CD", source + "application"}},
	{"kustomize.toolkit.fluxcd.io/name", "", Owner{"Flux", source + "Kustomization"}},
	{"helm.toolkit.fluxcd.io/name", "", Owner{"Flux", "change the values of the HelmRelease"}},
	{"objectset.rio.cattle.io/id", "", Owner{"k3s", custom}},
	{"objectset.rio.cattle.io/hash", "", Owner{"k3s", custom}},
	{"addonmanager.kubernetes.io/mode", "Reconcile", Owner{"the add-on manager", "forward the zone in the way that the platform documents"}},
	{"app.kubernetes.io/managed-by", "Helm", Owner{"Helm", "change the servers in the values of the release"}},
}

// others are recognized by their Deployment or DaemonSet.
var others = []struct {
	namespace, name string
	Owner
}{
	{"openshift-dns", "dns-default", Owner{"OpenShift's DNS operator", "forward the zone with `spec.servers` of dns.operator/default"}},
	{Namespace, "rke2-coredns-rke2-coredns", Owner{"RKE2", "forward the zone with a HelmChartConfig rke2-coredns"}},
	{Namespace, "kube-dns", Owner{"kube-dns", "forward the zone with `stubDomains` in ConfigMap kube-system/kube-dns"}},
}

// OwnerOf returns the owner that the objects name by their labels and annotations, nil if they name none. Objects may be
// nil.
func OwnerOf(objects ...metav1.Object) *Owner {
	for _, known := range owners {
		for _, object := range objects {
			for _, values := range []map[string]string{object.GetLabels(), object.GetAnnotations()} {
				value, found := values[known.key]
				if found && strings.EqualFold(value, cmp.Or(known.value, value)) {
					return &known.Owner
				}
			}
		}
	}
	return nil
}

// elsewhere returns what to do in a cluster without the objects of kubeadm's CoreDNS, where looking for them failed.
func (o Options) elsewhere(ctx context.Context, failed error) error {
	if !apierrors.IsNotFound(failed) {
		return fmt.Errorf("looking for CoreDNS as kubeadm installs it: %w", failed)
	}
	apps := o.Cluster.Kube.AppsV1()
	for _, other := range others {
		_, deployment := apps.Deployments(other.namespace).Get(ctx, other.name, metav1.GetOptions{})
		_, daemonSet := apps.DaemonSets(other.namespace).Get(ctx, other.name, metav1.GetOptions{})
		if deployment == nil || daemonSet == nil {
			return fmt.Errorf("%s answers in this cluster, not CoreDNS as kubeadm installs it: %s", other.Name, other.Instead)
		}
	}
	return fmt.Errorf("this cluster has no CoreDNS as kubeadm installs it: %w. Forward the zone in its DNS server", failed)
}
