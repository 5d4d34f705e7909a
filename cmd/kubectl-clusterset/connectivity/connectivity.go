// SPDX-License-Identifier: Apache-2.0

// Package connectivity tests whether a pod of each cluster reaches a pod of each cluster by the names of the set: its
// own, behind a headless Service, and that of a clusterset IP.
package connectivity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/cmd/clusterset-controller/probe"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/progress"
)

// settleTimeout is how long connections may fail once names resolve: kube-proxy is slower.
const settleTimeout = 15 * time.Second

// Options say what to test.
type Options struct {
	// Clusters are two or more.
	Clusters []*cluster.Cluster
	// Zone is that of the set.
	Zone   string
	Teller progress.Teller
}

// A site is a cluster with its pod, which owns the other objects of the test.
type site struct {
	*cluster.Cluster
	id string
	// name is that of the pod and of its Service with a cluster IP.
	name string
}

// headless is the name of the headless Service.
func (s *site) headless() string { return s.name + "-headless" }

// Run tests, and deletes what it created, whatever happens. The report may have failures; the error is of a test that
// could not be made, or of objects that could not be deleted.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	sites, err := o.sites(ctx)
	if err != nil {
		return nil, err
	}
	report, targets := o.plan(sites)
	o.Teller.Say("Starting a pod in each of %d clusters, in namespace %s", len(sites), sites[0].Namespace)
	var group errgroup.Group
	for _, s := range sites {
		defer func() { err = errors.Join(err, s.delete(ctx)) }()
		group.Go(func() error { return s.create(ctx, targets) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	// Phases wait until no path has one of the steps. Their timeouts are no errors: the report has the failures.
	for _, phase := range []struct {
		timeout time.Duration
		steps   []probe.Step
	}{
		{o.Teller.Timeout, []probe.Step{"", probe.Unresolved}},
		{settleTimeout, []probe.Step{"", probe.Timeout, probe.Refused, probe.LargeLost, probe.Failed}},
	} {
		teller := o.Teller
		teller.Timeout = phase.timeout
		err := teller.Wait(ctx, func(ctx context.Context) (string, error) {
			waiting := ""
			for i, s := range sites {
				results, pending, err := s.results(ctx)
				if err != nil {
					return "", err
				}
				waiting = cmp.Or(waiting, pending)
				for j := range results {
					report.Paths[i*len(results)+j].Result = results[j]
				}
			}
			return cmp.Or(waiting, report.first(phase.steps)), nil
		})
		if err != nil && (!errors.Is(err, progress.ErrTimeout) || report.first([]probe.Step{""}) != "") {
			return nil, err
		}
	}
	return report, nil
}

// sites are the clusters, which are different ones of one set and have a controller.
func (o Options) sites(ctx context.Context) ([]*site, error) {
	run := utilrand.String(5) // what a killed test left is in no other test's way
	identities := make([]cluster.Identity, len(o.Clusters))
	sites := make([]*site, len(o.Clusters))
	for i, c := range o.Clusters {
		var err error
		if identities[i], err = c.Identify(ctx); err != nil {
			return nil, err
		}
		sites[i] = &site{Cluster: c, id: identities[i].ID, name: fmt.Sprintf("clusterset-probe-%s-%d", run, i)}
	}
	return sites, cluster.Distinct(o.Clusters, identities)
}

// plan has two paths from each cluster to each, and the targets of each pod.
func (o Options) plan(sites []*site) (report *Report, targets []string) {
	report = &Report{}
	for _, s := range sites {
		domain := "." + s.Namespace + ".svc." + strings.TrimSuffix(o.Zone, ".")
		targets = append(targets, s.name+domain+"="+s.id, s.name+"."+s.id+"."+s.headless()+domain+"="+s.id)
	}
	for _, from := range sites {
		for i, target := range targets {
			name, _, _ := strings.Cut(target, "=")
			report.Paths = append(report.Paths, Path{From: from.Context, To: sites[i/2].Context, Name: name})
		}
	}
	return report, targets
}

// create creates the pod, the Services and their ServiceExports.
func (s *site) create(ctx context.Context, targets []string) error {
	version, err := s.MCSVersion(ctx)
	if err != nil {
		return err
	}
	pod, err := s.podOf(ctx, targets)
	if err != nil {
		return err
	}
	made, err := s.Kube.CoreV1().Pods(s.Namespace).Create(ctx, pod, metav1.CreateOptions{FieldManager: cluster.FieldManager})
	if err != nil {
		return fmt.Errorf("context %s: create a pod in namespace %s: %w", s.Context, s.Namespace, err)
	}
	owners := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: made.Name, UID: made.UID}}
	for _, name := range []string{s.name, s.headless()} {
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: pod.Labels, OwnerReferences: owners},
			Spec: corev1.ServiceSpec{
				Selector: pod.Labels, IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicyPreferDualStack),
				Ports: []corev1.ServicePort{{Name: "tcp", Port: probe.Port}},
			},
		}
		if name == s.headless() {
			service.Spec.ClusterIP = corev1.ClusterIPNone
		}
		_, err := s.Kube.CoreV1().Services(s.Namespace).Create(ctx, service, metav1.CreateOptions{FieldManager: cluster.FieldManager})
		export := cluster.NewServiceExport(version, s.Namespace, name)
		export.SetLabels(pod.Labels)
		export.SetOwnerReferences(owners)
		if err == nil {
			err = s.CreateExport(ctx, export)
		}
		if err != nil {
			return fmt.Errorf("context %s: create and export Service %s/%s: %w", s.Context, s.Namespace, name, err)
		}
	}
	return nil
}

// first says which path has one of the steps, empty if none has.
func (r *Report) first(steps []probe.Step) string {
	for _, p := range r.Paths {
		if slices.Contains(steps, p.Step) {
			return fmt.Sprintf("%s → %s: %s: %s", p.From, p.To, p.Name, cmp.Or(p.Step, "not tried"))
		}
	}
	return ""
}
