// SPDX-License-Identifier: Apache-2.0

// Package connectivity tests whether pods of each cluster reach pods of the
// others: at their addresses, with small and large packets over TCP and UDP, and
// by the names of the set as pods resolve them.
//
// It creates pods in the namespace of the controller, has each of them try all
// paths, and deletes them. What the results mean is decided by pure functions
// (judge.go, findings.go).
package connectivity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/explain"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/probepod"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/progress"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
)

// Options say what to test.
type Options struct {
	// Clusters are two or more.
	Clusters []*cluster.Cluster
	// Image has clusterset-controller. Empty means that of each cluster's
	// Deployment.
	Image string
	// Zone is that of the set.
	Zone   string
	Teller progress.Teller
}

// system is the flag that names the namespace of the controllers, where it is not
// the usual one.
func (o Options) system() string {
	if namespace := o.Clusters[0].Namespace; namespace != member.DefaultNamespace {
		return " --system-namespace " + namespace
	}
	return ""
}

// flags also name the zone.
func (o Options) flags() string {
	if zone := strings.TrimSuffix(o.Zone, "."); zone != explain.DefaultZone {
		return " --zone " + zone + o.system()
	}
	return o.system()
}

// nameTimeout is how long names may take to resolve once imports are there: a
// cache in front of the DNS may have to forget that they did not exist.
const nameTimeout = 30 * time.Second

// Run tests, and deletes what it created, whatever happens. The report may have
// failures; the error is of a test that could not be made, or of objects that
// could not be deleted, with a report.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	sites, err := o.sites(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(append([]error{err}, each(sites, func(s *site) error { return s.cleanup(ctx) })...)...)
	}()
	o.Teller.Say("Starting %d pods in each of %d clusters, in "+
		"namespace %s", podsOfCluster, len(sites), sites[0].Namespace)
	if err := errors.Join(each(sites, func(s *site) error { return s.create(ctx) })...); err != nil {
		return nil, err
	}
	pods, err := o.awaitPods(ctx, sites)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(each(sites, func(s *site) error { return s.export(ctx) })...); err != nil {
		return nil, err
	}
	without, err := o.unread(ctx, sites)
	if err != nil {
		return nil, err
	}
	if err := o.awaitImports(ctx, sites, without); err != nil {
		return nil, err
	}
	n := names{service: Name, withIP: nameWithIP, namespace: sites[0].Namespace, zone: strings.TrimSuffix(o.Zone, ".")}
	probes, err := o.probe(ctx, sites, pods, n, without)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(probes, compare)
	d := diagnosis{probes: probes, pods: pods, names: n, skips: without, flags: o.flags()}
	return &Report{Pods: pods, Probes: probes, Findings: d.findings()}, nil
}

// each does something in all clusters at once.
func each(sites []*site, do func(*site) error) []error {
	failed := make([]error, len(sites))
	var group errgroup.Group
	for i, s := range sites {
		group.Go(func() error { failed[i] = do(s); return nil })
	}
	_ = group.Wait() // the errors are in the list
	return failed
}

// sites are the clusters, which are different ones and have a controller.
func (o Options) sites(ctx context.Context) ([]*site, error) {
	sites := make([]*site, len(o.Clusters))
	identities := make([]cluster.Identity, len(o.Clusters))
	for i, c := range o.Clusters {
		sites[i] = &site{Cluster: c}
	}
	wrong := each(sites, func(s *site) (err error) {
		i := slices.Index(sites, s)
		if identities[i], err = s.Identify(ctx); err != nil {
			return err
		}
		s.id = identities[i].ID
		if s.spec, err = probepod.Template(ctx, s.Cluster, o.Image); err != nil {
			return fmt.Errorf("%w: set the image with --image", err)
		}
		return nil
	})
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	return sites, cluster.Distinct(o.Clusters, identities)
}

// awaitPods waits until all pods are ready.
func (o Options) awaitPods(ctx context.Context, sites []*site) (pods []Pod, err error) {
	err = o.Teller.Wait(ctx, func(ctx context.Context) (string, error) {
		pods = nil
		var waiting []string
		for _, s := range sites {
			list, err := s.Kube.CoreV1().Pods(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector()})
			if err != nil {
				return "", fmt.Errorf("context %s: %w", s.Context, err)
			}
			for i := range list.Items {
				pod := &list.Items[i]
				pending, err := probepod.Pending(pod)
				if err != nil {
					return "", fmt.Errorf("context %s: %w: set a newer image of clusterset-controller with "+
						"--image if this one has no command probe", s.Context, err)
				}
				if pending != "" {
					waiting = append(waiting, fmt.Sprintf("pod %s in %s is not ready (%s)", pod.Name, s.Context, pending))
					continue
				}
				made := Pod{Context: s.Context, Cluster: s.id, Name: pod.Name, Node: pod.Spec.NodeName}
				for _, ip := range pod.Status.PodIPs {
					made.Addresses = append(made.Addresses, ip.IP)
				}
				pods = append(pods, made)
			}
		}
		return strings.Join(waiting, "; "), nil
	})
	if err == nil && len(pods) != podsOfCluster*len(sites) {
		err = fmt.Errorf("%d of %d pods exist: the others were deleted", len(pods), podsOfCluster*len(sites))
	}
	return pods, err
}

// unread says between which clusters names cannot resolve, because the one is no
// member of the other.
func (o Options) unread(ctx context.Context, sites []*site) (skips, error) {
	without := skips{}
	for _, s := range sites {
		for _, other := range sites {
			if s == other {
				continue
			}
			lease, err := s.MemberLease(ctx, memberstate.LeasePrefix+other.id)
			if err != nil {
				return nil, fmt.Errorf("context %s: %w", s.Context, err)
			}
			if lease == nil {
				without[[2]string{s.Context, other.Context}] = skip{
					fmt.Sprintf("%s is no member of %s.", other.Context, s.Context),
					fmt.Sprintf("kubectl clusterset join %s %s%s", s.Context, other.Context, o.system()),
				}
			}
		}
	}
	return without, nil
}

// awaitImports waits until each cluster has imported what the others export, as
// far as they allow it. Exports that are refused are added to without. What does
// not come in time is seen in the probes.
func (o Options) awaitImports(ctx context.Context, sites []*site, without skips) error {
	err := o.Teller.Wait(ctx, func(ctx context.Context) (string, error) {
		for _, s := range sites {
			message, err := s.exportRefused(ctx)
			if err != nil {
				return "", err
			}
			for _, other := range sites {
				if message != "" && other != s {
					refused := skip{"namespace " + s.Namespace + " is not exported by " + s.Context + ": " + message, ""}
					without[[2]string{s.Context, other.Context}] = refused
					without[[2]string{other.Context, s.Context}] = refused
				}
			}
		}
		var waiting []string
		for _, s := range sites {
			imports, err := s.ServiceImports(ctx, s.Namespace)
			if err != nil {
				return "", err
			}
			for _, other := range sites {
				if _, skipped := without[[2]string{s.Context, other.Context}]; other != s && !skipped && !imported(imports,
					other.id) {
					waiting = append(waiting, fmt.Sprintf("%s has not imported the exports of %s yet", s.Context, other.Context))
				}
			}
		}
		return strings.Join(waiting, "; "), nil
	})
	if errors.Is(err, progress.ErrTimeout) {
		o.Teller.Say("%v", err)
		return nil
	}
	return err
}

// exportRefused is the message of a ServiceExport that is not valid.
func (s *site) exportRefused(ctx context.Context) (string, error) {
	found, err := s.ServiceExport(ctx, s.Namespace, Name)
	if err != nil || found == nil {
		return "", err
	}
	valid := meta.FindStatusCondition(found.Status.Conditions, string(v1beta1.ServiceExportConditionValid))
	if valid == nil || valid.Status == metav1.ConditionTrue ||
		valid.Reason == string(v1beta1.ServiceExportReasonNoService) {
		return "", nil
	}
	return valid.Message, nil
}

// imported tells whether both services are imported of a cluster, and one has its
// IP.
func imported(imports []v1beta1.ServiceImport, id string) bool {
	count := 0
	for i := range imports {
		each := &imports[i]
		if (each.Name == Name || each.Name == nameWithIP && len(each.Spec.IPs) > 0) &&
			slices.ContainsFunc(each.Status.Clusters, func(c v1beta1.ClusterStatus) bool { return c.Cluster == id }) {
			count++
		}
	}
	return count == 2
}
