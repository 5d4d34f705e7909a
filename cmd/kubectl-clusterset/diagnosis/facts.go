// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/setup"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// A Set has the clusters to check.
type Set struct {
	Clusters []*Cluster
	// Zone is the zone of the set.
	Zone string
	// Pre means that clusterset-dns may not be installed yet.
	Pre bool
}

// A Cluster has the facts about a cluster.
type Cluster struct {
	*cluster.Cluster
	// Unreachable is why nothing else is known, nil if the API server answers.
	Unreachable error
	// Version is the version of the API server, empty if unknown, and Ahead by how much its clock is ahead of the local one, nil if
	// unknown.
	Version string
	Ahead   *time.Duration
	// Unidentified is why the ID is unknown.
	Unidentified error
	// State is the state that the controller reports, nil with a StateError.
	State      *state.Cluster
	StateError error
	// MCSVersion is the version of the MCS API, empty if it is not served.
	MCSVersion string
	// Lost are fields that the CustomResourceDefinitions of the MCS API lack, unknown with a LostError.
	Lost      []string
	LostError error
	// MemberHas are rights that credentials of members must not have, as text. RightsError is why there may be more.
	MemberHas   []string
	RightsError error

	// PodCIDRs are the pod ranges, none with a PodCIDRsError. Nodes are the addresses of the nodes, and ServiceCIDRs the
	// Service ranges; none if unknown.
	PodCIDRs, Nodes, ServiceCIDRs []netip.Prefix
	PodCIDRsError                 error
	// CoreDNS is the Deployment of CoreDNS as kubeadm installs it, and Corefile its Corefile; nil with a CorefileError.
	CoreDNS       *appsv1.Deployment
	Corefile      *setup.Corefile
	CorefileError error
	// NodeCaches are the ConfigMaps of NodeLocal DNSCache that do not pass the zone on. Pods query it instead of the cluster's
	// DNS. NodeCachesError is why there may be more.
	NodeCaches      []string
	NodeCachesError error
	// Apex is the answer for the zone itself, DNSError why DNS was not queried.
	Apex     cluster.Answer
	DNSError error
	// Lookups are answers for some of the imported services.
	Lookups []NameAnswer
}

// maxLookups bounds the number of names that are queried.
const maxLookups = 10

// Gather reads the clusters. statuses are the reports of their controllers.
func Gather(ctx context.Context, clusters []*cluster.Cluster, statuses []Status, zone string) *Set {
	set := &Set{Zone: zone, Clusters: make([]*Cluster, len(clusters))}
	_ = cluster.Each(clusters, func(i int, from *cluster.Cluster) error {
		c := &Cluster{Cluster: from, State: statuses[i].Cluster, StateError: statuses[i].Err}
		set.Clusters[i] = c
		if c.MCSVersion, c.Unreachable = from.MCSVersion(ctx); c.Unreachable == nil {
			c.gather(ctx, zone)
			c.ask(ctx, zone)
		}
		return nil
	})
	return set
}

// look reads the version of the API server, and its clock from an object that the API server does not store.
func (c *Cluster) look(ctx context.Context) {
	if is, err := discovery.ToDiscoveryInterfaceWithContext(c.Kube.Discovery()).ServerVersionWithContext(ctx); err == nil {
		c.Version = is.GitVersion
	}
	review, err := c.Kube.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err == nil && !review.CreationTimestamp.IsZero() {
		c.Ahead = ptr.To(time.Until(review.CreationTimestamp.Time))
	}
}

// gather reads all facts except DNS.
func (c *Cluster) gather(ctx context.Context, zone string) {
	c.Unidentified = c.Identify(ctx)
	if c.State != nil {
		c.ID, c.UID, c.Network, c.Unidentified = c.State.Cluster, cmp.Or(c.State.UID, c.UID), c.State.Network, nil
	}
	c.look(ctx)
	c.Lost, c.LostError = c.lost(ctx)
	c.MemberHas, c.RightsError = c.reviewMembers(ctx)
	c.PodCIDRs, c.Nodes, c.PodCIDRsError = setup.Ranges(ctx, c.Cluster)
	if list, err := c.Kube.NetworkingV1().ServiceCIDRs().List(ctx, metav1.ListOptions{}); err == nil {
		for i := range list.Items {
			c.ServiceCIDRs = setup.AddPrefixes(c.ServiceCIDRs, list.Items[i].Spec.CIDRs...)
		}
	}
	found, err := c.Kube.AppsV1().Deployments(setup.CoreDNSNamespace).Get(ctx, setup.CoreDNSName, metav1.GetOptions{})
	if c.CorefileError = err; err == nil {
		c.CoreDNS = found
		c.Corefile, c.CorefileError = setup.ReadCorefile(ctx, c.Cluster, setup.CoreDNSNamespace, setup.CoreDNSName)
	}
	for _, name := range nodeCaches {
		switch corefile, err := setup.ReadCorefile(ctx, c.Cluster, setup.CoreDNSNamespace, name); {
		case err == nil && !corefile.Passes(zone):
			c.NodeCaches = append(c.NodeCaches, name)
		case err != nil && !apierrors.IsNotFound(err):
			c.NodeCachesError = err
		}
	}
}

// nodeCaches are the ConfigMaps of NodeLocal DNSCache in the manifests of Kubernetes and of Kubespray.
var nodeCaches = []string{"node-local-dns", "nodelocaldns"}

// newest are the newest fields in the specs of the MCS API, by kind.
var newest = map[string]string{v1beta1.ServiceExportKindName: "exportedAnnotations", v1beta1.ServiceImportKindName: "trafficDistribution"}

// lost returns the newest fields that the OpenAPI document of the MCS API lacks, which the API server drops.
func (c *Cluster) lost(ctx context.Context) (fields []string, err error) {
	client := c.Kube.Discovery().RESTClient()
	if c.MCSVersion == "" || client == nil { // a fake has none
		return nil, errors.New("the MCS API is not served")
	}
	text, err := client.Get().AbsPath("openapi/v3/apis", v1beta1.GroupName, c.MCSVersion).DoRaw(ctx)
	for kind, field := range newest { // whose names no other field of this API has
		if strings.Contains(string(text), `"kind":"`+kind+`"`) && !strings.Contains(string(text), `"`+field+`":`) {
			fields = append(fields, field+" of "+kind)
		}
	}
	slices.Sort(fields)
	return fields, err
}

// ask queries the cluster's DNS.
func (c *Cluster) ask(ctx context.Context, zone string) {
	server, err := c.DNS(ctx)
	if err != nil {
		c.DNSError = err
		return
	}
	defer server.Close()
	if c.Apex, c.DNSError = server.Ask(ctx, zone, "SOA"); c.DNSError != nil || c.State == nil || !c.hasZone() {
		return
	}
	for i := range c.State.Imports {
		each := &c.State.Imports[i]
		// The endpoints of a headless service are in its explanation.
		if len(c.Lookups) == maxLookups || each.Type == string(v1beta1.Headless) {
			continue
		}
		answers, err := resolve(ctx, server, nameOf(each.Namespace, each.Name, zone), []string{"A", "AAAA"}, each, each.IPs)
		if c.Lookups = append(c.Lookups, answers...); err != nil {
			c.DNSError = err
			return
		}
	}
}
