// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/setup"
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

// A Cluster has the facts of a cluster. What the user may not read counts as missing.
type Cluster struct {
	// Context is that in the kubeconfig, and Server the address of the API server in it. If Unreachable is set, nothing
	// else is.
	Context, Server string
	Unreachable     error
	// Version is that of the API server, and Ahead by how much its clock is ahead of the local one. Both are unknown if Version
	// is empty.
	Version string
	Ahead   time.Duration
	// System is the namespace of the controller, and UID that of the namespace kube-system.
	System, UID string
	// ID and Set are those of the controller; ID is empty if Unidentified is why they are unknown.
	ID           string
	Set          cluster.Set
	Unidentified error
	// State is what the controller says, nil if StateError is why it does not.
	State      *state.Cluster
	StateError error
	// MCSVersion is that of the MCS API, empty if it is not served.
	MCSVersion string
	// Lost are fields that the CustomResourceDefinitions of the MCS API lack.
	Lost []string
	// ControllerLacks and MemberLacks are missing rights, and MemberHas rights that credentials of members must not have, as
	// text. They are unknown if RightsError is set.
	ControllerLacks, MemberLacks, MemberHas []string
	RightsError                             error

	// PodCIDRs are the ranges of the nodes, and ServiceCIDRs the Service ranges; none if unknown.
	PodCIDRs, ServiceCIDRs []netip.Prefix
	// Kubelets are the versions of the kubelets, by their nodes.
	Kubelets map[string]string
	// CoreDNS is the Deployment of CoreDNS as kubeadm installs it, nil if there is none. Corefile is its Corefile, and
	// ChartCorefile that of the CoreDNS of the chart; each is nil if it is missing or invalid.
	CoreDNS                 *appsv1.Deployment
	Corefile, ChartCorefile *setup.Corefile
	CorefileError           error
	// NodeCaches are the ConfigMaps of NodeLocal DNSCache, which pods query instead of the cluster's DNS, that do not pass
	// the zone on.
	NodeCaches []string
	// Apex is the answer for the zone itself, DNSError why DNS was not queried.
	Apex     cluster.Answer
	DNSError error
	// Lookups are answers for some of the imported services.
	Lookups []NameAnswer
}

// patience bounds how long a cluster is read.
const patience = 30 * time.Second

// maxLookups bounds the number of names that are queried.
const maxLookups = 10

// Gather reads the clusters. states and failed are what their controllers say; server returns the DNS server of a cluster.
func Gather(ctx context.Context, clusters []*cluster.Cluster, states []*state.Cluster, failed []error, zone string,
	server func(context.Context, *cluster.Cluster) (*cluster.DNSServer, error),
) *Set {
	set := &Set{Zone: zone, Clusters: make([]*Cluster, len(clusters))}
	var group sync.WaitGroup
	for i, from := range clusters {
		c := &Cluster{
			Context: from.Context, Server: from.Config.Host, System: from.Namespace, State: states[i], StateError: failed[i],
		}
		set.Clusters[i] = c
		group.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			if c.Unreachable = c.identify(ctx, from); c.Unreachable == nil {
				c.Version, c.Ahead = look(ctx, from.Config)
				c.gather(ctx, from, zone)
				c.ask(ctx, from, zone, server)
			}
		})
	}
	group.Wait()
	return set
}

// identify reads what nearly all checks need. An unreachable API server is an error.
func (c *Cluster) identify(ctx context.Context, from *cluster.Cluster) (err error) {
	if c.MCSVersion, err = from.MCSVersion(ctx); err != nil {
		return err
	}
	is, err := from.Identify(ctx)
	c.ID, c.UID, c.Set, c.Unidentified = is.ID, is.UID, is.Set, err
	if c.State != nil {
		c.ID, c.UID, c.Set, c.Unidentified = c.State.Cluster, cmp.Or(c.State.UID, is.UID), cluster.Set(c.State.ClusterSet), nil
	}
	return nil
}

// look returns the version of an API server, empty if it is not known, and by how much its clock is ahead.
func look(ctx context.Context, config *rest.Config) (gitVersion string, ahead time.Duration) {
	var says apiversion.Info
	base, _, wrong := rest.DefaultServerUrlFor(config)
	client, err := rest.HTTPClientFor(config)
	if errors.Join(wrong, err) != nil {
		return "", 0
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("version").String(), http.NoBody)
	if err != nil {
		return "", 0
	}
	response, err := client.Do(request)
	if err != nil {
		return "", 0
	}
	defer response.Body.Close()
	date, err := http.ParseTime(response.Header.Get("Date"))
	if errors.Join(err, json.NewDecoder(io.LimitReader(response.Body, 1<<16)).Decode(&says)) != nil {
		return "", 0
	}
	return says.GitVersion, time.Until(date)
}

// gather reads the rest.
func (c *Cluster) gather(ctx context.Context, from *cluster.Cluster, zone string) {
	c.Lost = lost(ctx, from, c.MCSVersion)
	c.RightsError = c.reviewAccounts(ctx, from)
	if list, err := from.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err == nil {
		c.Kubelets = map[string]string{}
		for i := range list.Items {
			c.Kubelets[list.Items[i].Name] = list.Items[i].Status.NodeInfo.KubeletVersion
			c.PodCIDRs = append(c.PodCIDRs, prefixes(list.Items[i].Spec.PodCIDRs)...)
		}
	}
	if list, err := from.Kube.NetworkingV1().ServiceCIDRs().List(ctx, metav1.ListOptions{}); err == nil {
		for i := range list.Items {
			c.ServiceCIDRs = append(c.ServiceCIDRs, prefixes(list.Items[i].Spec.CIDRs)...)
		}
	}
	if found, err := from.Kube.AppsV1().Deployments(setup.CoreDNSNamespace).Get(ctx, setup.CoreDNSName, metav1.GetOptions{}); err == nil {
		c.CoreDNS = found
		c.Corefile, c.CorefileError = setup.ReadCorefile(ctx, from, setup.CoreDNSNamespace, setup.CoreDNSName)
	}
	c.ChartCorefile = setup.ReadChartCorefile(ctx, from)
	for _, name := range nodeCaches {
		if corefile, _ := setup.ReadCorefile(ctx, from, setup.CoreDNSNamespace, name); corefile != nil && !corefile.Passes(zone) {
			c.NodeCaches = append(c.NodeCaches, name)
		}
	}
}

// nodeCaches are the ConfigMaps of NodeLocal DNSCache in Kubernetes' manifest, and in that of Kubespray.
var nodeCaches = []string{"node-local-dns", "nodelocaldns"}

// newest are the newest fields in the specs of the MCS API.
var newest = map[string]string{
	v1beta1.ServiceExportFullName: "exportedAnnotations", v1beta1.ServiceImportFullName: "trafficDistribution",
}

// lost returns those of the newest fields that the API server does not keep in a version.
func lost(ctx context.Context, from *cluster.Cluster, mcsVersion string) (fields []string) {
	definitions := from.Dynamic.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	for name, field := range newest {
		definition, err := definitions.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			continue
		}
		versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
		for _, each := range versions {
			version, _ := each.(map[string]any)
			_, kept, err := unstructured.NestedMap(version, "schema", "openAPIV3Schema", "properties", "spec", "properties", field)
			if err == nil && !kept && version["name"] == mcsVersion {
				fields = append(fields, field+" of "+name)
			}
		}
	}
	slices.Sort(fields)
	return fields
}

// ask queries the cluster's DNS.
func (c *Cluster) ask(ctx context.Context, from *cluster.Cluster, zone string,
	find func(context.Context, *cluster.Cluster) (*cluster.DNSServer, error),
) {
	server, err := find(ctx, from)
	if err != nil {
		c.DNSError = err
		return
	}
	defer server.Close()
	if c.Apex, c.DNSError = server.Ask(ctx, zone, "SOA"); c.DNSError != nil || c.State == nil {
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
			c.Lookups = append(c.Lookups, expect(answer, each, each.IPs))
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
