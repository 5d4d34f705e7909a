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

// An Owner is what writes the Deployment or the Corefile of a cluster's CoreDNS, and reverts changes of others.
type Owner struct {
	// Name is that of the owner, for a sentence such as "Argo CD manages CoreDNS".
	Name string
	// Instead says how its users change the Corefile.
	Instead string
}

// owners are recognized by a label or an annotation; an empty value stands for any. More specific ones come first.
var owners = []struct {
	key, value string
	Owner
}{
	{"eks.amazonaws.com/component", "", Owner{"Amazon EKS", "forward the zone in the configuration of the add-on (`corefile`)"}},
	{"kubernetes.azure.com/managedby", "", Owner{"AKS", "forward the zone with a key `clusterset.server` in ConfigMap kube-system/coredns-custom"}},
	{"argocd.argoproj.io/instance", "", Owner{"Argo CD", "change the Corefile in the source of the application"}},
	{"argocd.argoproj.io/tracking-id", "", Owner{"Argo CD", "change the Corefile in the source of the application"}},
	{"kustomize.toolkit.fluxcd.io/name", "", Owner{"Flux", "change the Corefile in the source of the Kustomization"}},
	{"helm.toolkit.fluxcd.io/name", "", Owner{"Flux", "change the values of the HelmRelease"}},
	{"objectset.rio.cattle.io/id", "", Owner{"k3s", "forward the zone with a key `clusterset.server` in ConfigMap kube-system/coredns-custom"}},
	{"objectset.rio.cattle.io/hash", "", Owner{"k3s", "forward the zone with a key `clusterset.server` in ConfigMap kube-system/coredns-custom"}},
	{"addonmanager.kubernetes.io/mode", "Reconcile", Owner{"the add-on manager", "forward the zone in the way that the platform documents"}},
	{"app.kubernetes.io/managed-by", "Helm", Owner{"Helm", "change the servers in the values of the release"}},
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
	for _, other := range []struct {
		name, instead string
		get           func() error
	}{
		{"OpenShift's DNS operator", "forward the zone with `spec.servers` of dns.operator/default", func() error {
			_, err := apps.DaemonSets("openshift-dns").Get(ctx, "dns-default", metav1.GetOptions{})
			return err
		}},
		{"RKE2", "forward the zone with a HelmChartConfig rke2-coredns", func() error {
			_, err := apps.Deployments(Namespace).Get(ctx, "rke2-coredns-rke2-coredns", metav1.GetOptions{})
			return err
		}},
		{"kube-dns", "forward the zone with `stubDomains` in ConfigMap kube-system/kube-dns", func() error {
			_, err := apps.Deployments(Namespace).Get(ctx, "kube-dns", metav1.GetOptions{})
			return err
		}},
	} {
		if other.get() == nil {
			return fmt.Errorf("%s answers in this cluster, not CoreDNS as kubeadm installs it: %s", other.name, other.instead)
		}
	}
	return fmt.Errorf("this cluster has no CoreDNS as kubeadm installs it: %w. Forward the zone in its DNS server", failed)
}
