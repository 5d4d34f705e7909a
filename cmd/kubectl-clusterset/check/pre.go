// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/coredns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/join"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/manifest"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/names"
)

// Prerequisites are what matters before clusterset-dns is installed.
type Prerequisites struct {
	// Lacks are rights that the user needs to install, and lacks.
	Lacks []manifest.Right
	// Property is the id in the ClusterProperty of the cluster, empty if there is
	// none.
	Property string
	// Others are other implementations of the MCS API.
	Others []string
}

// GatherPrerequisites has Run make the checks that matter before clusterset-dns
// is installed. The clusters are those of the set.
func (s *Set) GatherPrerequisites(ctx context.Context, clusters []*cluster.Cluster) {
	s.Pre = true
	var group sync.WaitGroup
	for i, c := range s.Clusters {
		if reached(c) {
			group.Go(func() { c.prerequisites(ctx, clusters[i]) })
		}
	}
	group.Wait()
}

// prerequisites gathers those of a cluster. What may not be read is left out.
func (c *Cluster) prerequisites(ctx context.Context, from *cluster.Cluster) {
	c.Lacks = lacking(ctx, from)
	c.Property, _ = from.Property(ctx)
	if config, err := from.Kube.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "cilium-config",
		metav1.GetOptions{}); err == nil && config.Data["clustermesh-enable-mcs-api"] == "true" {
		c.Others = append(c.Others, "Cilium")
	}
	if groups, err := from.Discovery().ServerGroupsWithContext(ctx); err == nil {
		for _, group := range groups.Groups {
			if name := implementations[group.Name]; name != "" {
				c.Others = append(c.Others, name)
			}
		}
	}
	if c.Namespaces["cloud-map-mcs-system"] != nil {
		c.Others = append(c.Others, "AWS Cloud Map MCS Controller")
	}
}

// implementations of the MCS API by the API group of their CRDs.
var implementations = map[string]string{"submariner.io": "Submariner", "work.karmada.io": "Karmada"}

// lacking returns the rights that the user lacks to install: to create and patch
// the objects, and to hold the rights that the roles give.
func lacking(ctx context.Context, from *cluster.Cluster) []manifest.Right {
	objects, err := manifest.Objects(manifest.All, from.Namespace)
	if err != nil {
		return nil
	}
	var rights []manifest.Right
	need := func(more ...manifest.Right) {
		for _, right := range more {
			if !slices.Contains(rights, right) {
				rights = append(rights, right)
			}
		}
	}
	for _, object := range objects {
		resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
		for _, verb := range []string{"create", "patch"} {
			need(manifest.Right{
				Group: resource.Group, Resource: resource.Resource, Verb: verb, Namespace: object.GetNamespace(),
			})
		}
		if object.GetKind() == "ClusterRole" || object.GetKind() == "Role" {
			if given, err := manifest.Required([]*unstructured.Unstructured{object}, object.GetName()); err == nil {
				need(given...)
			}
		}
	}
	lacks := make([]bool, len(rights))
	var group sync.WaitGroup
	for i, right := range rights {
		group.Go(func() {
			review, err := from.Kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx,
				&authorizationv1.SelfSubjectAccessReview{
					Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right},
				}, metav1.CreateOptions{})
			lacks[i] = err == nil && !review.Status.Allowed
		})
	}
	group.Wait()
	var lacked []manifest.Right
	for i, right := range rights {
		if lacks[i] {
			lacked = append(lacked, right)
		}
	}
	return lacked
}

// preChecks are those that only matter before clusterset-dns is installed.
var preChecks = []Check{
	{Name: "install-rights", About: "you may install clusterset-dns", run: func(_ *Set, c *Cluster) []problem {
		if len(c.Lacks) == 0 {
			return nil
		}
		return []problem{wrong("Install as a user with the ClusterRole cluster-admin, or with these rights.",
			"You may not %s.", rightsText(c.Lacks))}
	}},
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
			if err := names.ValidateID(c.Property); err != nil {
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
	{Name: "system-namespace", About: "the namespace of the controller is free", run: func(_ *Set, c *Cluster) []problem {
		const name = "app.kubernetes.io/name"
		fix := "Choose another namespace with --system-namespace, the same in all clusters."
		switch namespace := c.Namespaces[c.System]; {
		case namespace == nil:
			return nil
		case namespace.Status.Phase == corev1.NamespaceTerminating:
			return []problem{wrong("Wait until it is gone: `"+c.kubectl("wait --for=delete namespace %s", c.System)+"`.",
				"Namespace %s is being deleted.", c.System)}
		case namespace.Labels[name] != "" && namespace.Labels[name] != "clusterset-dns":
			return []problem{odd(fix, "Namespace %s belongs to %s, by its label %s.", c.System, namespace.Labels[name], name)}
		}
		return nil
	}},
	{
		Name: "other-implementations", About: "no other implementation of the MCS API is present",
		run: func(_ *Set, c *Cluster) []problem {
			others, foreign := slices.Clone(c.Others), 0
			for i := range c.Imports {
				if !names.IsManaged(&c.Imports[i]) {
					foreign++
				}
			}
			if foreign > 0 {
				others = append(others, fmt.Sprintf("the writer of ServiceImports (%d)", foreign))
			}
			if len(others) == 0 {
				return nil
			}
			return []problem{odd("Exclude the namespaces of the other implementation with --denied-namespaces, or "+
				"migrate as docs/migration.md describes.",
				"The cluster has another implementation of the MCS API: %s.", strings.Join(others, ", "))}
		},
	},
	{
		Name: "dns-server", About: "the DNS server, and the command that makes it serve the zone",
		note: func(s *Set, c *Cluster) string {
			caches := ""
			if len(c.NodeCaches) > 0 {
				caches = " NodeLocal DNSCache has to pass the zone on, too."
			}
			if c.Deployment == nil {
				return "There is no Deployment " + coredns.Namespace + "/" + coredns.Name + ". Have the DNS server of " +
					"the cluster forward the zone to the CoreDNS of the chart, see docs/platforms." + caches
			}
			return "CoreDNS runs " + c.image() + "." + caches + " After the installation: " + s.enable(c)
		},
		run: func(*Set, *Cluster) []problem { return nil },
	},
}

// Select returns the checks, or those that make sense before clusterset-dns is
// installed.
func Select(pre bool) []Check {
	if !pre {
		return Checks
	}
	selected := slices.Clone(preChecks)
	for _, check := range slices.Backward(Checks) {
		if slices.Contains(before, check.Name) {
			selected = slices.Insert(selected, 0, check)
		}
	}
	return selected
}

// before are the checks that also make sense before clusterset-dns is installed.
var before = []string{
	"api-reachable", "api-version", "distinct", "clock", "crds", "crds-complete", "cluster-id", "pod-ranges",
	"service-ranges", "node-version", "coredns-available", "corefile",
}
