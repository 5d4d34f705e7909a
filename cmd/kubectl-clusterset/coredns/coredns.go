// SPDX-License-Identifier: Apache-2.0

// Package coredns makes the CoreDNS of a cluster, as kubeadm installs it, forward the zone of the set to the CoreDNS of
// the chart, and reverts that.
package coredns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/dns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/progress"
)

// Location of CoreDNS.
const (
	Namespace = metav1.NamespaceSystem
	// Name is that of the Deployment and of the ConfigMap.
	Name = "coredns"
	// Key is that of the Corefile in the ConfigMap.
	Key = "Corefile"
)

const (
	// pollInterval is the time between two rounds of queries.
	pollInterval = 2 * time.Second
	// undoTimeout bounds the restoration of the Corefile.
	undoTimeout = time.Minute
)

// Options are those of Enable and Disable.
type Options struct {
	Cluster *cluster.Cluster
	Zone    string
	DryRun  bool
	Teller  progress.Teller

	// pods opens the DNS servers that are the ready pods with labels; nil means dns.Pods.
	pods func(ctx context.Context, c *cluster.Cluster, namespace string, labels map[string]string) ([]*dns.Server, error)
}

// Enable adds a server block to the Corefile that forwards the zone to the CoreDNS of the chart, and waits until every
// ready pod of CoreDNS has reloaded and answers for the zone. Otherwise it restores the former Corefile. Enable changes
// nothing if the Corefile does not parse, if something else owns it, or if the CoreDNS of the chart does not answer.
func Enable(ctx context.Context, o Options) error {
	chart, err := o.chart(ctx)
	if err != nil {
		return err
	}
	deployment, configMap, err := o.look(ctx)
	if err != nil {
		return byHand(err, new(Corefile).block(o.Zone, chart.Spec.ClusterIPs))
	}
	before := configMap.Data[Key]
	parsed, err := ParseCorefile(without(before, o.Zone))
	if err != nil {
		return byHand(fmt.Errorf("ConfigMap %s/%s: %w", Namespace, Name, err), new(Corefile).block(o.Zone, chart.Spec.ClusterIPs))
	}
	block := parsed.block(o.Zone, chart.Spec.ClusterIPs)
	if owner := OwnerOf(deployment, configMap); owner != nil {
		return byHand(fmt.Errorf("%s manages the CoreDNS of this cluster and would revert the change: %s", owner.Name,
			owner.Instead), block)
	}
	text, err := with(before, o.Zone, chart.Spec.ClusterIPs)
	if err != nil {
		return byHand(fmt.Errorf("ConfigMap %s/%s: %w", Namespace, Name, err), block)
	}
	if err := o.answered(ctx, chart.Namespace, chart.Spec.Selector); err != nil {
		return fmt.Errorf("the CoreDNS of the chart must answer for %s first: %w", name(o.Zone), err)
	}
	if text != before {
		configMap.Data[Key] = text
		switch err := o.update(ctx, configMap); {
		case o.DryRun, apierrors.IsConflict(err), apierrors.IsForbidden(err), apierrors.IsInvalid(err):
			return err
		case err != nil: // it may have been written
			return o.restore(ctx, before, text, err)
		}
	}
	teller := o.Teller
	teller.Interval = cmp.Or(teller.Interval, pollInterval)
	err = teller.Wait(ctx, func(ctx context.Context) (string, error) {
		if waiting := o.answered(ctx, Namespace, deployment.Spec.Selector.MatchLabels); waiting != nil {
			return waiting.Error(), nil //nolint:nilerr // Retry until the timeout.
		}
		return "", nil
	})
	switch {
	case err == nil && text != before:
		o.Teller.Did("context %s: all pods of CoreDNS answer for %s", o.Cluster.Context, name(o.Zone))
	case err != nil && text != before:
		return o.restore(ctx, before, text, err)
	}
	return err
}

// answered returns an error unless there are ready pods with labels, and each of them answers for the zone.
func (o Options) answered(ctx context.Context, namespace string, labels map[string]string) error {
	open := o.pods
	if open == nil {
		open = dns.Pods
	}
	servers, err := open(ctx, o.Cluster, namespace, labels)
	for _, server := range servers {
		defer server.Close()
	}
	for _, server := range servers {
		answer, failed := server.Ask(ctx, o.Zone, "SOA")
		if failed == nil && (answer.Rcode != "NOERROR" || len(answer.Records) == 0) {
			failed = fmt.Errorf("%s returns %s for %s", server.Name, answer.Text(), name(o.Zone))
		}
		err = errors.Join(err, failed)
	}
	return err
}

// restore undoes Enable after an error, even if ctx is canceled.
func (o Options) restore(ctx context.Context, before, text string, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	if err := o.edit(ctx, func(now string) string {
		if now == text {
			return before
		}
		return without(now, o.Zone) // someone else changed it meanwhile
	}); err != nil {
		return fmt.Errorf("%w; run `kubectl clusterset coredns disable`, because the Corefile could not be restored: %w", why, err)
	}
	return fmt.Errorf("%w; the former Corefile was restored", why)
}

// Disable removes what Enable added for the zone, and nothing else. CoreDNS reloads within minutes.
func Disable(ctx context.Context, o Options) error {
	edited, by := false, ""
	if err := o.edit(ctx, func(now string) string {
		text := without(now, o.Zone)
		edited = text != now
		if parsed, err := ParseCorefile(text); err == nil {
			by = parsed.By(o.Zone)
		}
		return text
	}); err != nil {
		return err
	}
	if by != "" {
		o.Teller.Say("context %s: ConfigMap %s/%s serves %s with the plugin %s, which `coredns enable` did not add: it is kept",
			o.Cluster.Context, Namespace, Name, name(o.Zone), by)
	}
	if edited && !o.DryRun {
		o.Teller.Did("context %s: ConfigMap %s/%s no longer forwards %s; CoreDNS reloads it within minutes", o.Cluster.Context,
			Namespace, Name, name(o.Zone))
	}
	return nil
}

// look reads the objects of CoreDNS.
func (o Options) look(ctx context.Context) (*appsv1.Deployment, *corev1.ConfigMap, error) {
	deployment, err := o.Cluster.Kube.AppsV1().Deployments(Namespace).Get(ctx, Name, metav1.GetOptions{})
	if err != nil {
		return nil, nil, o.elsewhere(ctx, err)
	}
	configMap, err := o.Cluster.Kube.CoreV1().ConfigMaps(Namespace).Get(ctx, Name, metav1.GetOptions{})
	if err != nil {
		return nil, nil, o.elsewhere(ctx, err)
	}
	return deployment, configMap, nil
}

// edit changes the Corefile if that changes its text.
func (o Options) edit(ctx context.Context, change func(string) string) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		configMap, err := o.Cluster.Kube.CoreV1().ConfigMaps(Namespace).Get(ctx, Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("ConfigMap %s/%s: %w", Namespace, Name, err)
		}
		text := change(configMap.Data[Key])
		if text == configMap.Data[Key] {
			return nil
		}
		configMap.Data[Key] = text
		return o.update(ctx, configMap)
	})
}

// update fails if the ConfigMap was changed meanwhile.
func (o Options) update(ctx context.Context, configMap *corev1.ConfigMap) error {
	if _, err := o.Cluster.Kube.CoreV1().ConfigMaps(Namespace).Update(ctx, configMap,
		metav1.UpdateOptions{FieldManager: cluster.FieldManager, DryRun: cluster.DryRun(o.DryRun)}); err != nil {
		return fmt.Errorf("ConfigMap %s/%s: %w", Namespace, Name, err)
	}
	if o.DryRun {
		o.Teller.Wrote(true, "context %s: ConfigMap %s/%s changed", o.Cluster.Context, Namespace, Name)
	}
	return nil
}

// byHand adds the lines to an error that an administrator can add to the Corefile.
func byHand(err error, block string) error {
	return fmt.Errorf("%w. The lines of a Corefile are:\n%s", err, strings.TrimSuffix(block, "\n"))
}
