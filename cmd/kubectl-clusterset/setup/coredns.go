// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/retry"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

// Location of CoreDNS.
const (
	CoreDNSNamespace = metav1.NamespaceSystem
	// CoreDNSName is the name of the Deployment and of the ConfigMap.
	CoreDNSName = "coredns"
	// CorefileKey is the key of the Corefile in the ConfigMap.
	CorefileKey = "Corefile"
	// chartName is the name of the objects of the chart's CoreDNS.
	chartName = "clusterset-coredns"
)

// undoTimeout bounds the restoration of the Corefile.
const undoTimeout = time.Minute

// A CoreDNS is the CoreDNS of a cluster, as kubeadm installs it.
type CoreDNS struct {
	Cluster *cluster.Cluster
	Zone    string
	DryRun  bool
	Teller  cluster.Teller

	// pods opens the DNS servers that are pods; nil means Cluster.DNSPods.
	pods func(ctx context.Context, namespace, selector string, most int) ([]*cluster.DNSServer, error)
}

// Enable adds a server block to the Corefile that forwards the zone to the CoreDNS of the chart, and waits until every
// ready pod of CoreDNS has reloaded and answers for the zone. Otherwise it restores the former Corefile. Enable changes
// nothing if the Corefile does not parse, if something else owns it, or if the CoreDNS of the chart does not answer.
func (o CoreDNS) Enable(ctx context.Context) error {
	chart, err := o.chart(ctx)
	if err != nil {
		return err
	}
	deployment, configMap, err := o.look(ctx)
	before, text := "", ""
	if err == nil {
		before = configMap.Data[CorefileKey]
		text, err = with(before, o.Zone, chart.Spec.ClusterIPs)
	}
	if err != nil {
		return fmt.Errorf("%w. The lines of a Corefile are:\n%s", err, new(Corefile).block(o.Zone, chart.Spec.ClusterIPs))
	}
	if _, err := o.answered(ctx, chart.Namespace, chart.Spec.Selector); err != nil {
		return fmt.Errorf("the CoreDNS of the chart must answer for %s first: %w", name(o.Zone), err)
	}
	if without(before, o.Zone) == before {
		if some, _ := o.answered(ctx, CoreDNSNamespace, deployment.Spec.Selector.MatchLabels); some {
			return fmt.Errorf("CoreDNS already answers for %s: remove the zone from the Corefile and the files that it imports or, "+
				"after coredns disable, wait a few minutes", name(o.Zone))
		}
	}
	if err = o.update(ctx, configMap, text); o.DryRun {
		return err
	}
	if err == nil {
		err = o.Teller.Wait(ctx, func(ctx context.Context) (string, error) {
			if _, waiting := o.answered(ctx, CoreDNSNamespace, deployment.Spec.Selector.MatchLabels); waiting != nil {
				return waiting.Error(), nil //nolint:nilerr // Retry until the timeout.
			}
			return "", nil
		})
	}
	switch {
	case err == nil:
		o.Teller.Did("context %s: all pods of CoreDNS answer for %s", o.Cluster.Context, name(o.Zone))
	case text == before, apierrors.IsConflict(err): // nothing was written
	default: // a write may have happened in spite of its error
		err = o.restore(ctx, before, text, err)
	}
	return err
}

// answered reports whether a ready pod with labels answers for the zone. It returns an error unless there are such pods, and each
// of them answers.
func (o CoreDNS) answered(ctx context.Context, namespace string, set map[string]string) (some bool, err error) {
	open := o.pods
	if open == nil {
		open = o.Cluster.DNSPods
	}
	servers, err := open(ctx, namespace, labels.FormatLabels(set), math.MaxInt)
	for _, server := range servers {
		answer, failed := server.Ask(ctx, o.Zone, "SOA")
		server.Close()
		if failed == nil && (answer.Rcode != "NOERROR" || len(answer.Records) == 0) {
			failed = fmt.Errorf("%s returns %s for %s", server.Name, answer.Text(), name(o.Zone))
		}
		some, err = some || failed == nil, errors.Join(err, failed)
	}
	return some, err
}

// restore undoes Enable after an error, even if ctx is canceled.
func (o CoreDNS) restore(ctx context.Context, before, text string, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	if err := o.edit(ctx, func(now string) string {
		if now == text || now == before { // the write may have failed
			return before
		}
		return without(now, o.Zone) // someone else changed it meanwhile
	}); err != nil {
		return fmt.Errorf("%w; run `kubectl clusterset coredns disable`, because the Corefile could not be restored: %w", why, err)
	}
	return fmt.Errorf("%w; the Corefile is as it was before", why)
}

// Disable removes the server block that Enable added for the zone, and nothing else. CoreDNS reloads within minutes.
func (o CoreDNS) Disable(ctx context.Context) error {
	err := o.edit(ctx, func(now string) string { return without(now, o.Zone) })
	if err == nil && !o.DryRun {
		o.Teller.Did("context %s: ConfigMap %s/%s has no block of `coredns enable` for %s (CoreDNS reloads a change within minutes)",
			o.Cluster.Context, CoreDNSNamespace, CoreDNSName, name(o.Zone))
	}
	return err
}

var errNoChart = errors.New("no CoreDNS of clusterset-dns to forward to: install the chart with --set coredns.enabled=true")

// chart returns the Service of the chart's CoreDNS. The ClusterRoleBinding of the chart, which only administrators can write,
// names its namespace.
func (o CoreDNS) chart(ctx context.Context) (service *corev1.Service, err error) {
	binding, err := o.Cluster.Kube.RbacV1().ClusterRoleBindings().Get(ctx, chartName, metav1.GetOptions{})
	if err == nil {
		at := slices.IndexFunc(binding.Subjects, func(subject rbacv1.Subject) bool { return subject.Name == chartName })
		if at < 0 {
			return nil, errNoChart
		}
		service, err = o.Cluster.Kube.CoreV1().Services(binding.Subjects[at].Namespace).Get(ctx, chartName, metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) {
		err = errNoChart
	}
	return service, err
}

// ReadCorefile returns the Corefile in a ConfigMap.
func ReadCorefile(ctx context.Context, c *cluster.Cluster, namespace, configMapName string) (*Corefile, error) {
	configMap, err := c.Kube.CoreV1().ConfigMaps(namespace).Get(ctx, configMapName, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return ParseCorefile(configMap.Data[CorefileKey])
}

// look reads the objects of CoreDNS. It is an error if something else owns them.
func (o CoreDNS) look(ctx context.Context) (deployment *appsv1.Deployment, configMap *corev1.ConfigMap, err error) {
	deployment, err = o.Cluster.Kube.AppsV1().Deployments(CoreDNSNamespace).Get(ctx, CoreDNSName, metav1.GetOptions{})
	if err == nil {
		configMap, err = o.Cluster.Kube.CoreV1().ConfigMaps(CoreDNSNamespace).Get(ctx, CoreDNSName, metav1.GetOptions{})
	}
	switch {
	case apierrors.IsNotFound(err):
		err = fmt.Errorf("this cluster has no CoreDNS as kubeadm installs it: %w. Forward the zone in its DNS server, see "+
			"docs/operate/install.md#platforms", err)
	case err == nil:
		err = owned(deployment, configMap)
	}
	return deployment, configMap, err
}

// edit changes the text of the Corefile.
func (o CoreDNS) edit(ctx context.Context, change func(string) string) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		configMap, err := o.Cluster.Kube.CoreV1().ConfigMaps(CoreDNSNamespace).Get(ctx, CoreDNSName, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("ConfigMap %s/%s: %w", CoreDNSNamespace, CoreDNSName, err)
		}
		return o.update(ctx, configMap, change(configMap.Data[CorefileKey]))
	})
}

// update writes the Corefile if its text changes. It fails if the ConfigMap was changed meanwhile.
func (o CoreDNS) update(ctx context.Context, configMap *corev1.ConfigMap, text string) error {
	if text == configMap.Data[CorefileKey] {
		return nil
	}
	configMap.Data[CorefileKey] = text
	if _, err := o.Cluster.Kube.CoreV1().ConfigMaps(CoreDNSNamespace).Update(ctx, configMap,
		metav1.UpdateOptions{FieldManager: cluster.FieldManager, DryRun: cluster.DryRun(o.DryRun)}); err != nil {
		return fmt.Errorf("ConfigMap %s/%s: %w", CoreDNSNamespace, CoreDNSName, err)
	}
	if o.DryRun {
		o.Teller.Wrote(true, "context %s: ConfigMap %s/%s changed", o.Cluster.Context, CoreDNSNamespace, CoreDNSName)
	}
	return nil
}

// owners write the Deployment or the Corefile of CoreDNS, and revert other changes. They are recognized by a label or an
// annotation; an empty value stands for any. More specific owners come first.
var owners = []struct{ key, value, name string }{
	{"eks.amazonaws.com/component", "", "Amazon EKS"},
	{"kubernetes.azure.com/managedby", "", "AKS"},
	{"argocd.argoproj.io/instance", "", "Argo CD"},
	{"argocd.argoproj.io/tracking-id", "", "Argo CD"},
	{"kustomize.toolkit.fluxcd.io/name", "", "Flux"},
	{"helm.toolkit.fluxcd.io/name", "", "Flux"},
	{"objectset.rio.cattle.io/id", "", "k3s"},
	{"objectset.rio.cattle.io/hash", "", "k3s"},
	{"addonmanager.kubernetes.io/mode", "Reconcile", "the add-on manager"},
	{"app.kubernetes.io/managed-by", "Helm", "Helm"},
}

// owned returns an error if labels or annotations of objects name an owner.
func owned(objects ...metav1.Object) error {
	for _, owner := range owners {
		for _, object := range objects {
			for _, values := range []map[string]string{object.GetLabels(), object.GetAnnotations()} {
				value, found := values[owner.key]
				if found && strings.EqualFold(value, cmp.Or(owner.value, value)) {
					return fmt.Errorf("%s manages the CoreDNS of this cluster and would revert the change: forward the zone in its "+
						"configuration, see docs/operate/install.md#platforms", owner.name)
				}
			}
		}
	}
	return nil
}
