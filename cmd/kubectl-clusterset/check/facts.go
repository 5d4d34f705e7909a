// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/coredns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/dns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/explain"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/manifest"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/names"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// A Set is all clusters that are checked.
type Set struct {
	Clusters []*Cluster
	// Zone is that of the set.
	Zone string
	// Pre tells that clusterset-dns may not be installed yet.
	Pre bool
}

// A Cluster has the facts of a cluster, and what only checks need.
type Cluster struct {
	// Context is that in the kubeconfig. If Unreachable is set, nothing after Server
	// is.
	Context     string
	Unreachable error
	// Server is the address of its API server in that context.
	Server string
	// Release is the version of this program, empty if that is not one of a release.
	Release string
	// ID and Set are those of its heartbeat; ID is empty if its controller never wrote one.
	ID, Set string
	// UID is that of its namespace kube-system, System the namespace of its controller.
	UID, System string
	// Version is that of its API server, MCSVersion that of the MCS API, empty if it is not served.
	Version, MCSVersion string
	// Now is the time by its clock, which is Ahead of the local one.
	Now   time.Time
	Ahead time.Duration
	// Namespaces are all, by name; Imports are those of the cluster set and of other implementations.
	Namespaces map[string]*corev1.Namespace
	Imports    []v1beta1.ServiceImport
	// Heartbeat is nil if there is none.
	Heartbeat *coordinationv1.Lease
	// Corefile is that of CoreDNS as kubeadm installs it, empty if it cannot be read.
	Corefile string
	// State is what its controller says, nil if StateError is why it does not.
	State      *state.Cluster
	StateError error
	Prerequisites

	// Definitions are the CustomResourceDefinitions of the MCS API by name.
	Definitions map[string]*unstructured.Unstructured
	// ControllerLacks, MemberLacks and CoreDNSLacks are missing rights. MemberHas are
	// rights that credentials of members must not have.
	ControllerLacks, MemberLacks, MemberHas, CoreDNSLacks []manifest.Right
	// Bindings are those, other than the shipped ones, that grant rights to the
	// account of members, and Groups those that grant rights to all service accounts.
	Bindings, Groups []Binding
	// RolesGive are rights that were added to the shipped roles of members.
	RolesGive []manifest.Right
	Nodes     []corev1.Node
	// ServiceCIDRs are the Service ranges; none if unknown.
	ServiceCIDRs []netip.Prefix
	// Deployment is that of CoreDNS, nil if it is not as kubeadm installs it.
	Deployment *appsv1.Deployment
	// ChartCorefile is that of the chart's CoreDNS, empty if unknown.
	ChartCorefile string
	// NodeCaches have the Corefiles of caches on nodes that pods query instead of the cluster's DNS.
	NodeCaches []corev1.ConfigMap
	// Apex is the answer for the zone itself, DNSError why DNS was not queried.
	Apex     dns.Answer
	DNSError error
	// Lookups are answers for some of the imported services.
	Lookups []explain.Answer
}

// A Binding is one of RBAC. Group is its subject, empty if that is an account.
type Binding struct{ Kind, Namespace, Name, Group string }

// patience is how long an API server may take to say what nearly all checks need.
const patience = 15 * time.Second

// maxLookups bounds the number of names that are queried.
const maxLookups = 10

// Gather reads the clusters. release is the version of this program, empty if that is not one of a release; server
// returns the DNS server of a cluster. states and failed are what their controllers say.
func Gather(ctx context.Context, clusters []*cluster.Cluster, states []*state.Cluster, failed []error, zone, release string,
	server func(context.Context, *cluster.Cluster) (*dns.Server, error),
) *Set {
	set := &Set{Zone: zone, Clusters: make([]*Cluster, len(clusters))}
	var group sync.WaitGroup
	for i, from := range clusters {
		c := &Cluster{
			Context: from.Context, Server: from.Config.Host, Release: release, System: from.Namespace,
			State: states[i], StateError: failed[i], Namespaces: map[string]*corev1.Namespace{},
		}
		set.Clusters[i] = c
		group.Go(func() {
			bounded, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			if c.Unreachable = c.identify(bounded, from); c.Unreachable == nil {
				c.gather(ctx, from)
				c.ask(ctx, from, zone, server)
			}
		})
	}
	group.Wait()
	return set
}

// identify reads what nearly all checks need. Forbidden objects are left out; an unreachable API server is an error.
func (c *Cluster) identify(ctx context.Context, from *cluster.Cluster) error {
	version, err := from.Discovery().ServerVersionWithContext(ctx)
	if apierrors.IsForbidden(err) {
		return errors.New("the API server denies GET /version to this user (403 Forbidden): use another user, or " +
			"bind this one to ClusterRole system:public-info-viewer")
	}
	if err != nil {
		return err
	}
	c.Version = version.GitVersion
	if c.MCSVersion, err = from.MCSVersion(ctx); err != nil {
		return err
	}
	namespaces, err := from.Kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	for i := range namespaces.Items {
		c.Namespaces[namespaces.Items[i].Name] = &namespaces.Items[i]
	}
	if system := c.Namespaces[metav1.NamespaceSystem]; system != nil {
		c.UID = string(system.UID)
	}
	if identity, err := from.Identify(ctx); err == nil {
		c.ID, c.Set, c.Heartbeat = identity.ID, string(identity.Set), identity.Heartbeat
	}
	if c.MCSVersion != "" {
		imports, err := from.ServiceImports(ctx, "")
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			return err
		}
		c.Imports = slices.DeleteFunc(imports, func(each v1beta1.ServiceImport) bool {
			namespace := c.Namespaces[each.Namespace]
			return namespace != nil && namespace.Labels[names.LabelSet] != c.Set
		})
	}
	if configMap, err := from.Kube.CoreV1().ConfigMaps(coredns.Namespace).Get(ctx, coredns.Name,
		metav1.GetOptions{}); err == nil {
		c.Corefile = configMap.Data[coredns.Key]
	}
	c.Now, c.Ahead = from.Now(), from.Ahead()
	return nil
}

// gather reads the rest. Objects that must not be read count as missing.
func (c *Cluster) gather(ctx context.Context, from *cluster.Cluster) {
	c.Definitions = map[string]*unstructured.Unstructured{}
	definitions := schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions",
	}
	for _, name := range []string{v1beta1.ServiceExportFullName, v1beta1.ServiceImportFullName} {
		if found, err := from.Dynamic.Resource(definitions).Get(ctx, name, metav1.GetOptions{}); err == nil {
			c.Definitions[name] = found
		}
	}
	c.rights(ctx, from)
	if list, err := from.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err == nil {
		c.Nodes = list.Items
	}
	if list, err := from.Kube.NetworkingV1().ServiceCIDRs().List(ctx, metav1.ListOptions{}); err == nil {
		for i := range list.Items {
			c.ServiceCIDRs = append(c.ServiceCIDRs, prefixes(list.Items[i].Spec.CIDRs)...)
		}
	}
	if deployment, err := from.Kube.AppsV1().Deployments(coredns.Namespace).Get(ctx, coredns.Name,
		metav1.GetOptions{}); err == nil {
		c.Deployment = deployment
		c.CoreDNSLacks, _ = manifest.Missing(ctx, from.Kube, coredns.Namespace, accountOf(deployment),
			corednsNeeds)
	}
	c.ChartCorefile = coredns.ChartCorefile(ctx, from)
	c.NodeCaches = nodeCaches(ctx, from)
}

func (c *Cluster) rights(ctx context.Context, from *cluster.Cluster) {
	objects, err := manifest.Objects(manifest.Rights, c.System)
	if err != nil {
		return
	}
	for account, lacks := range map[string]*[]manifest.Right{
		controllerAccount:      &c.ControllerLacks,
		manifest.MemberAccount: &c.MemberLacks,
	} {
		required, err := manifest.Required(objects, account)
		if err != nil {
			continue
		}
		*lacks, _ = manifest.Missing(ctx, from.Kube, c.System, account, required)
		if account == manifest.MemberAccount {
			c.roles(ctx, from, required)
		}
	}
	c.MemberHas, _ = manifest.Allowed(ctx, from.Kube, c.System, manifest.MemberAccount, manifest.Dangerous(c.System))
	if list, err := from.Kube.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{}); err == nil {
		for i := range list.Items {
			c.binding("clusterrolebinding", list.Items[i].ObjectMeta, list.Items[i].Subjects)
		}
	}
	if list, err := from.Kube.RbacV1().RoleBindings("").List(ctx, metav1.ListOptions{}); err == nil {
		for i := range list.Items {
			c.binding("rolebinding", list.Items[i].ObjectMeta, list.Items[i].Subjects)
		}
	}
}

// roles compares the roles of members with the shipped ones.
func (c *Cluster) roles(ctx context.Context, from *cluster.Cluster, shipped []manifest.Right) {
	var given []manifest.Right
	if role, err := from.Kube.RbacV1().ClusterRoles().Get(ctx, c.named(manifest.MemberAccount),
		metav1.GetOptions{}); err == nil {
		for _, rule := range role.Rules {
			given = append(given, manifest.Expand(rule, "")...)
		}
	}
	if role, err := from.Kube.RbacV1().Roles(c.System).Get(ctx, manifest.MemberAccount,
		metav1.GetOptions{}); err == nil {
		for _, rule := range role.Rules {
			given = append(given, manifest.Expand(rule, c.System)...)
		}
	}
	c.RolesGive = slices.DeleteFunc(given, func(right manifest.Right) bool { return slices.Contains(shipped, right) })
}

// named is the name that the chart gives to the release of the set, or to its object without a namespace.
func (c *Cluster) named(object string) string {
	if c.Set == "" {
		return object
	}
	return object + "-" + string(c.Set)
}

// controllerAccount is the service account of the controller, and the name of
// its roles.
const controllerAccount = "clusterset-controller"

func (c *Cluster) binding(kind string, object metav1.ObjectMeta, subjects []rbacv1.Subject) {
	shipped := object.Namespace == "" && object.Name == c.named(manifest.MemberAccount) ||
		object.Namespace == c.System && object.Name == manifest.MemberAccount
	// Kubernetes' own bindings grant what every account needs.
	if shipped || object.Labels["kubernetes.io/bootstrapping"] != "" {
		return
	}
	binding := Binding{Kind: kind, Namespace: object.Namespace, Name: object.Name}
	for _, subject := range subjects {
		switch {
		case subject.Kind == rbacv1.ServiceAccountKind && subject.Namespace == c.System &&
			subject.Name == manifest.MemberAccount,
			subject.Kind == rbacv1.UserKind && subject.Name == "system:serviceaccount:"+c.System+":"+
				manifest.MemberAccount:
			c.Bindings = append(c.Bindings, binding)
		case subject.Kind == rbacv1.GroupKind && slices.Contains(manifest.Groups(c.System), subject.Name):
			binding.Group = subject.Name
			c.Groups = append(c.Groups, binding)
		default:
			continue
		}
		return
	}
}

// ask queries the cluster's DNS.
func (c *Cluster) ask(ctx context.Context, from *cluster.Cluster, zone string,
	find func(context.Context, *cluster.Cluster) (*dns.Server, error),
) {
	server, err := find(ctx, from)
	if err != nil {
		c.DNSError = err
		return
	}
	defer server.Close()
	if c.Apex, c.DNSError = server.Ask(ctx, zone, "SOA"); c.DNSError != nil {
		return
	}
	if c.State == nil {
		return
	}
	for i := range c.State.Imports {
		each := &c.State.Imports[i]
		// The endpoints of a headless service are in its explanation.
		if len(c.Lookups) == maxLookups || each.Type == string(v1beta1.Headless) {
			continue
		}
		for _, kind := range []string{"A", "AAAA"} {
			answer, err := server.Ask(ctx, each.Name+"."+each.Namespace+".svc."+strings.TrimSuffix(zone, "."), kind)
			if err != nil {
				c.DNSError = err
				return
			}
			c.Lookups = append(c.Lookups, explain.Expect(answer, each, each.IPs))
		}
	}
}

// prefixes parses prefixes, and ignores invalid ones.
func prefixes(texts []string) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range texts {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			out = append(out, prefix.Masked())
		}
	}
	return out
}

// podCIDRs are the ranges of the cluster's pods, as its nodes have them.
func (c *Cluster) podCIDRs() []netip.Prefix {
	var out []netip.Prefix
	for i := range c.Nodes {
		out = append(out, prefixes(c.Nodes[i].Spec.PodCIDRs)...)
	}
	return out
}
