// SPDX-License-Identifier: Apache-2.0

// Package connectivity tests whether a pod of each cluster reaches a pod of each cluster by the names of the set: its
// own, behind a headless Service, and that of a clusterset IP.
package connectivity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/cmd/clusterset-controller/probe"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/output"
)

// settleTimeout is how long connections may fail once all names resolve: kube-proxy is slower.
const settleTimeout = 15 * time.Second

// A site is a cluster with its pod, which owns the other objects of the test.
type site struct {
	*cluster.Cluster
	id string
	// name is that of the pod and of its Service with a cluster IP.
	name string
}

// headless is the name of the headless Service.
func (s *site) headless() string { return s.name + "-headless" }

// Run tests two or more clusters of the set with a zone, and deletes what it created, whatever happens. The report may
// have failures; the error is of a test that could not be made, or of objects that could not be deleted.
func Run(ctx context.Context, clusters []*cluster.Cluster, zone string, teller output.Teller) (report *Report, err error) {
	sites, targets, err := plan(ctx, clusters, zone)
	if err != nil {
		return nil, err
	}
	report = &Report{}
	for _, from := range sites {
		for i, target := range targets {
			name, _, _ := strings.Cut(target, "=")
			report.Paths = append(report.Paths, Path{From: from.Context, To: sites[i/2].Context, Name: name})
		}
	}
	teller.Say("Starting a pod in each of %d clusters, in namespace %s", len(sites), sites[0].Namespace)
	var group errgroup.Group
	for _, s := range sites {
		defer func() { err = errors.Join(err, s.delete(ctx)) }()
		group.Go(func() error { return s.create(ctx, targets) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	resolved := time.Now() // when the last name was not yet
	err = teller.Wait(ctx, func(ctx context.Context) (waiting string, err error) {
		for i, s := range sites {
			pending, err := s.read(ctx, report.Paths[i*len(targets):(i+1)*len(targets)])
			if err != nil {
				return "", err
			}
			waiting = cmp.Or(waiting, pending)
		}
		for _, p := range report.Paths {
			if p.Step != probe.OK {
				waiting = cmp.Or(waiting, fmt.Sprintf("%s → %s: %s: %s", p.From, p.To, p.Name, cmp.Or(p.Step, "not tried")))
			}
		}
		switch {
		case report.has("", probe.Unresolved):
			resolved = time.Now()
		case time.Since(resolved) > settleTimeout:
			return "", nil
		}
		return waiting, nil
	})
	if errors.Is(err, output.ErrTimeout) && !report.has("") {
		err = nil // the report has the failures
	}
	if err != nil {
		return nil, err
	}
	return report, nil
}

// plan has the clusters, which are different ones of one set and have a controller, and the targets of each pod: for each
// cluster the names of the Service with a cluster IP and of the pod behind the headless one.
func plan(ctx context.Context, clusters []*cluster.Cluster, zone string) (sites []*site, targets []string, err error) {
	run := utilrand.String(5) // what a killed test left is in no other test's way
	identities, err := cluster.Identify(ctx, clusters)
	if err != nil {
		return nil, nil, err
	}
	for i, c := range clusters {
		s := &site{Cluster: c, id: identities[i].ID, name: fmt.Sprintf("clusterset-probe-%s-%d", run, i)}
		domain := "." + s.Namespace + ".svc." + strings.TrimSuffix(zone, ".")
		targets = append(targets, s.name+domain+"="+s.id, s.name+"."+s.id+"."+s.headless()+domain+"="+s.id)
		sites = append(sites, s)
	}
	return sites, targets, nil
}

// create creates the pod, the Services and their ServiceExports.
func (s *site) create(ctx context.Context, targets []string) error {
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
		if err == nil {
			export := metav1.ObjectMeta{Namespace: s.Namespace, Name: name, Labels: pod.Labels, OwnerReferences: owners}
			err = s.CreateServiceExport(ctx, export, nil)
		}
		if err != nil {
			return fmt.Errorf("context %s: create and export Service %s/%s: %w", s.Context, s.Namespace, name, err)
		}
	}
	return nil
}
