// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/join"
)

// property is the id in the ClusterProperty of the cluster (KEP-2149), empty if there is none, or if it may not be read.
func property(ctx context.Context, from *cluster.Cluster) string {
	for _, version := range []string{"v1beta1", "v1alpha1"} {
		found, err := from.Dynamic.Resource(schema.GroupVersionResource{
			Group: "about.k8s.io", Version: version, Resource: "clusterproperties",
		}).Get(ctx, "cluster.clusterset.k8s.io", metav1.GetOptions{})
		if err == nil {
			value, _, _ := unstructured.NestedString(found.Object, "spec", "value")
			return value
		}
	}
	return ""
}

// implementations returns the other implementations of the MCS API in a cluster.
func implementations(ctx context.Context, from *cluster.Cluster) (names []string) {
	config, err := from.Kube.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "cilium-config", metav1.GetOptions{})
	if err == nil && config.Data["clustermesh-enable-mcs-api"] == "true" {
		names = append(names, "Cilium")
	}
	if groups, err := from.Discovery().ServerGroupsWithContext(ctx); err == nil {
		for i := range groups.Groups {
			switch groups.Groups[i].Name {
			case "submariner.io":
				names = append(names, "Submariner")
			case "work.karmada.io":
				names = append(names, "Karmada")
			}
		}
	}
	if _, err := from.Kube.CoreV1().Namespaces().Get(ctx, "cloud-map-mcs-system", metav1.GetOptions{}); err == nil {
		names = append(names, "AWS Cloud Map MCS Controller")
	}
	return names
}

// preChecks are those that only matter before clusterset-dns is installed.
var preChecks = []Check{
	{
		Name: "server-address", About: "other clusters can reach the address of the API server",
		run: func(_ *Set, c *Cluster) []problem {
			if !join.Loopback(c.Server) {
				return nil
			}
			return []problem{odd("Find an address that the pods of the other clusters reach, and give it to join: `"+
				"kubectl clusterset join "+c.Context+" <other contexts> --server "+c.Context+"=<address>`.",
				"The server of the context is %s, which other machines cannot reach.", c.Server)}
		},
	},
	{
		Name: "cluster-property", About: "the ClusterProperty has a valid and unique id",
		skip: func(_ *Set, c *Cluster) string {
			if c.Property == "" {
				return "There is no ClusterProperty cluster.clusterset.k8s.io: give each cluster an id at the installation."
			}
			return ""
		},
		run: func(s *Set, c *Cluster) []problem {
			fix := c.kubectl(`patch clusterproperty cluster.clusterset.k8s.io --type merge -p '{"spec":{"value":"<id>"}}'`)
			if err := cluster.ValidateID(c.Property); err != nil {
				return []problem{wrong(fix, "%v", err)}
			}
			for _, other := range s.others(c) {
				if c.Property == other.Property || c.Property == other.ID {
					return []problem{wrong(fix, "The cluster of context %s has the id %s, too.", other.Context, c.Property)}
				}
			}
			return nil
		},
	},
	{
		Name: "other-implementations", About: "no other implementation of the MCS API is present",
		run: func(_ *Set, c *Cluster) []problem {
			if len(c.Others) == 0 {
				return nil
			}
			return []problem{odd("Exclude the namespaces of the other implementation with --denied-namespaces, or migrate as "+
				"docs/migration.md describes.", "The cluster has another implementation of the MCS API: %s.", strings.Join(c.Others, ", "))}
		},
	},
	{
		Name: "dns-server", About: "how the cluster's DNS comes to serve the zone",
		run: func(*Set, *Cluster) []problem { return nil },
		note: func(s *Set, c *Cluster) string {
			note := "After the installation: " + s.enable(c)
			if len(c.NodeCaches) > 0 {
				note = "NodeLocal DNSCache has to pass the zone on, see docs/operate/install.md#nodelocal-dnscache. " + note
			}
			return note
		},
	},
}

// before are the checks that also make sense before clusterset-dns is installed.
var before = []string{
	"api-reachable", "api-version", "distinct", "crds-complete", "cluster-id", "pod-ranges", "service-ranges", "corefile",
}

// Select returns the checks, or those that make sense before clusterset-dns is installed.
func Select(pre bool) []Check {
	if !pre {
		return Checks
	}
	selected := slices.DeleteFunc(slices.Clone(Checks), func(each Check) bool { return !slices.Contains(before, each.Name) })
	return append(selected, preChecks...)
}
