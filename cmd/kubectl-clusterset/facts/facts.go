// SPDX-License-Identifier: Apache-2.0

// Package facts reads the state of a cluster of the set, without judging it.
package facts

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"time"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/coredns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/join"
	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/accept"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/leader"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
)

// Facts are the state of one cluster.
type Facts struct {
	// Context is that in the kubeconfig.
	Context string
	// ID is its cluster id, empty if its controller never wrote a heartbeat.
	ID string
	// UID is that of its namespace kube-system.
	UID string
	// System is the namespace of its controller, whether it exists or not.
	System string
	// Set is the cluster set of its controller. What belongs to other sets is left out.
	Set export.Set
	// Now is the time by its clock, which is Ahead of the local one.
	Now   time.Time
	Ahead time.Duration
	// Version is that of its API server, as in v1.37.1.
	Version string
	// MCSVersion is the served version of the MCS API, empty if there is none.
	MCSVersion string
	// DeniedNamespaces are the patterns of namespaces that its controller neither
	// exports nor imports: those of its Deployment, or the default if the
	// Deployment cannot be read.
	DeniedNamespaces []string
	// Accept are the patterns of --accept, nil if the Deployment cannot be read: then those in the heartbeat count.
	Accept []string
	// Prefer is the controller's --prefer, empty if the Deployment cannot be read.
	Prefer string
	// Heartbeat and Leader are the Leases of its controller, nil if they do
	// not exist.
	Heartbeat, Leader *coordinationv1.Lease
	// Namespaces are all, by name.
	Namespaces map[string]*corev1.Namespace
	// Members are those with a Secret or a Lease, sorted by ID.
	Members []Member
	// SecretsUnseen is why the credentials of members are unknown.
	SecretsUnseen error
	// Exports, Imports, Services and Slices are those of the requested namespace, or
	// of all. Without a namespace, there are no Services, and only Slices with a
	// source cluster.
	Exports  []v1beta1.ServiceExport
	Imports  []v1beta1.ServiceImport
	Services []corev1.Service
	Slices   []*discoveryv1.EndpointSlice
	// Corefile is that of CoreDNS as kubeadm installs it, empty if it cannot be read.
	Corefile string
}

// Drained reports whether the cluster demotes its own endpoints by annotation.
func (f *Facts) Drained() bool {
	namespace := f.Namespaces[f.System]
	return namespace != nil && namespace.Annotations[memberstate.AnnotationDrain] == "true"
}

// Member returns the member with an id, nil if there is none.
func (f *Facts) Member(id string) *Member {
	for i := range f.Members {
		if f.Members[i].ID == id {
			return &f.Members[i]
		}
	}
	return nil
}

// ContextOf is the context of the cluster with an id, or a placeholder.
func (f *Facts) ContextOf(id string) string {
	if id == f.ID {
		return f.Context
	}
	if m := f.Member(id); m != nil && m.Context != "" {
		return m.Context
	}
	return "<context of " + id + ">"
}

// Copies are the slices that the local controller wrote for a service and a source
// cluster.
func (f *Facts) Copies(service types.NamespacedName, source string) []*discoveryv1.EndpointSlice {
	var copies []*discoveryv1.EndpointSlice
	for _, slice := range f.Slices {
		if export.IsManaged(slice) && member.ServiceOf(slice) == service &&
			slice.Labels[export.LabelSourceCluster] == source {
			copies = append(copies, slice)
		}
	}
	return copies
}

// Gather reads a cluster. The namespace selects objects as documented at Facts.
// Missing and forbidden objects are left out; an unreachable API server is an
// error.
func Gather(ctx context.Context, c *cluster.Cluster, namespace string) (*Facts, error) {
	f := &Facts{Context: c.Context, System: c.Namespace, Namespaces: map[string]*corev1.Namespace{}}
	version, err := c.Kube.Discovery().ServerVersion()
	if apierrors.IsForbidden(err) {
		return nil, errors.New("the API server denies GET /version to this user (403 Forbidden): use another user, or " +
			"bind this one to ClusterRole system:public-info-viewer")
	}
	if err != nil {
		return nil, err
	}
	f.Version = version.GitVersion
	if f.MCSVersion, err = c.MCSVersion(ctx); err != nil {
		return nil, err
	}
	for _, gather := range []func(context.Context, *cluster.Cluster, string) error{
		f.namespaces, f.leases, f.members,
		f.services, f.slices, f.mcs, f.coreDNS, f.controller,
	} {
		if err := gather(ctx, c, namespace); err != nil {
			return nil, err
		}
	}
	f.Now, f.Ahead = c.Now(), c.Ahead()
	f.ofSet()
	return f, nil
}

// ofSet leaves out what belongs to other cluster sets.
func (f *Facts) ofSet() {
	other := func(object metav1.Object) bool {
		if export.IsManaged(object) {
			return !f.Set.Manages(object)
		}
		return f.Elsewhere(object.GetNamespace())
	}
	f.Exports = slices.DeleteFunc(f.Exports, func(each v1beta1.ServiceExport) bool { return f.Elsewhere(each.Namespace) })
	f.Imports = slices.DeleteFunc(f.Imports, func(each v1beta1.ServiceImport) bool { return other(&each) })
	f.Services = slices.DeleteFunc(f.Services, func(each corev1.Service) bool { return other(&each) })
	f.Slices = slices.DeleteFunc(f.Slices, func(each *discoveryv1.EndpointSlice) bool { return other(each) })
}

func (f *Facts) namespaces(ctx context.Context, c *cluster.Cluster, _ string) error {
	list, err := c.Kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		f.Namespaces[list.Items[i].Name] = &list.Items[i]
	}
	if system := f.Namespaces[metav1.NamespaceSystem]; system != nil {
		f.UID = string(system.UID)
	}
	return nil
}

func (f *Facts) leases(ctx context.Context, c *cluster.Cluster, _ string) error {
	list, err := c.Kube.CoordinationV1().Leases(c.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		lease := &list.Items[i]
		switch id := lease.Labels[member.ClusterLabel]; {
		case lease.Name == member.HeartbeatLease:
			f.Heartbeat, f.ID = lease, ptr.Deref(lease.Spec.HolderIdentity, "")
			f.Set = export.Set(member.DescriptionOf(lease).ClusterSet)
		case lease.Name == leader.Lease:
			f.Leader = lease
		case id != "" && lease.Name == memberstate.LeasePrefix+id:
			f.Members = append(f.Members, Member{ID: id, Lease: lease})
		}
	}
	return nil
}

func (f *Facts) members(ctx context.Context, c *cluster.Cluster, _ string) error {
	secrets, err := c.Credentials(ctx, "")
	if apierrors.IsForbidden(err) {
		f.SecretsUnseen = err
		secrets, err = nil, nil
	}
	if err != nil {
		return err
	}
	// The controller uses that of the Lease, or else the oldest.
	unused := func(secret *corev1.Secret) int {
		if m := f.Member(secret.Labels[member.ClusterLabel]); m != nil && m.Origin() == "Secret "+member.NameOf(secret) {
			return 0
		}
		return 1
	}
	slices.SortFunc(secrets, func(a, b corev1.Secret) int {
		return cmp.Or(unused(&a)-unused(&b), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for i := range secrets {
		secret := &secrets[i]
		id := secret.Labels[member.ClusterLabel]
		m := f.Member(id)
		if m == nil {
			f.Members = append(f.Members, Member{ID: id})
			m = &f.Members[len(f.Members)-1]
		}
		if m.Secret != nil {
			m.Surplus = append(m.Surplus, secret.Name)
			continue
		}
		m.parse(secret)
		if m.Events, err = c.Events(ctx, secret); err != nil && !apierrors.IsForbidden(err) {
			return err
		}
	}
	slices.SortFunc(f.Members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return nil
}

func (f *Facts) services(ctx context.Context, c *cluster.Cluster, namespace string) error {
	if namespace == "" {
		return nil
	}
	list, err := c.Kube.CoreV1().Services(namespace).List(ctx, metav1.ListOptions{})
	if err == nil {
		f.Services = list.Items
	}
	return err
}

func (f *Facts) slices(ctx context.Context, c *cluster.Cluster, namespace string) error {
	options := metav1.ListOptions{}
	if namespace == "" {
		options.LabelSelector = export.LabelSourceCluster
	}
	list, err := c.Kube.DiscoveryV1().EndpointSlices(namespace).List(ctx, options)
	if err != nil {
		return err
	}
	f.Slices = pointers(list.Items)
	return nil
}

func (f *Facts) mcs(ctx context.Context, c *cluster.Cluster, namespace string) (err error) {
	if f.MCSVersion == "" {
		return nil
	}
	// One of the two definitions may be missing.
	if f.Exports, err = c.ServiceExports(ctx, namespace); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if f.Imports, err = c.ServiceImports(ctx, namespace); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

func (f *Facts) coreDNS(ctx context.Context, c *cluster.Cluster, _ string) error {
	configMap, err := c.Kube.CoreV1().ConfigMaps(coredns.Namespace).Get(ctx, coredns.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	if err == nil {
		f.Corefile = configMap.Data[coredns.Key]
	}
	return err
}

// Denied reports whether the controller neither exports nor imports services of a
// namespace.
func (f *Facts) Denied(namespace string) bool {
	return slices.ContainsFunc(f.DeniedNamespaces, func(pattern string) bool {
		matched, err := path.Match(pattern, namespace)
		return err == nil && matched
	})
}

// Elsewhere reports whether a namespace exists and is of another cluster set.
func (f *Facts) Elsewhere(namespace string) bool {
	return f.Namespaces[namespace] != nil && !f.Set.Takes(f.Namespaces[namespace])
}

// Takes reports whether what members publish for a namespace is imported: the
// namespace exists, is of the cluster set of the controller, and is not denied.
func (f *Facts) Takes(namespace string) bool {
	return f.Set.Takes(f.Namespaces[namespace]) && !f.Denied(namespace)
}

func (f *Facts) controller(ctx context.Context, c *cluster.Cluster, _ string) error {
	f.DeniedNamespaces = controller.DefaultDeniedNamespaces
	deployment, err := c.Kube.AppsV1().Deployments(c.Namespace).Get(ctx, join.ControllerName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	if err == nil {
		f.DeniedNamespaces, f.Accept, f.Prefer = flagsOf(deployment)
	}
	return err
}

// flagsOf reads --denied-namespaces, --accept and --prefer as the controller does.
func flagsOf(deployment *appsv1.Deployment) (deniedNamespaces, accepted []string, preferred string) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	denied := flags.StringSlice("denied-namespaces", controller.DefaultDeniedNamespaces, "")
	prefer := flags.String("prefer", "", "")
	accepts := flags.StringSlice("accept", []string{accept.Everything}, "")
	for i := range deployment.Spec.Template.Spec.Containers {
		container := &deployment.Spec.Template.Spec.Containers[i]
		// The controller itself rejects invalid flags.
		_ = flags.Parse(slices.Concat(container.Command, container.Args))
	}
	return *denied, *accepts, *prefer
}

func pointers[T any](list []T) []*T {
	out := make([]*T, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}
