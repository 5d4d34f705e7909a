// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/manifest"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/names"
)

// oldestServer is the oldest API server that serves all installed objects:
// ValidatingAdmissionPolicies have been v1 since then.
var oldestServer = version.MustParseGeneric("1.30.0")

// oldestProxy is the oldest kube-proxy that moves traffic away from demoted
// endpoints (feature ProxyTerminatingEndpoints).
var oldestProxy = version.MustParseGeneric("1.26.0")

// maxSkew is the clock skew above which new tokens may be rejected as not valid
// yet. Nothing else depends on clocks.
const maxSkew = 30 * time.Second

var apiChecks = []Check{
	{Name: "api-reachable", About: "the API server answers", unreached: true, run: func(_ *Set, c *Cluster) []problem {
		if c.Unreachable == nil {
			return nil
		}
		return []problem{wrong("Make sure that the API server at "+c.Server+
			" is up, or correct the address and credentials of context "+c.Context+" in your kubeconfig.",
			"The API server is unreachable: %v", c.Unreachable)}
	}},
	{Name: "api-version", About: "Kubernetes is 1.30 or newer", run: func(_ *Set, c *Cluster) []problem {
		if parsed, err := version.ParseGeneric(c.Version); err == nil && parsed.LessThan(oldestServer) {
			return []problem{wrong("Upgrade Kubernetes to 1.30 or newer.", "Kubernetes %s is not supported.", c.Version)}
		}
		return nil
	}},
	{Name: "distinct", About: "contexts refer to different clusters", run: func(s *Set, c *Cluster) []problem {
		for _, other := range s.Clusters {
			if other == c {
				break
			}
			if reached(other) && other.UID == c.UID {
				return []problem{wrong("Name each cluster once in --contexts, or point context "+c.Context+
					" to another cluster in your kubeconfig.",
					"Context %s refers to the same cluster.", other.Context)}
			}
		}
		return nil
	}},
	{Name: "clock", About: "the clocks of all API servers agree", run: func(s *Set, c *Cluster) (found []problem) {
		for _, other := range s.Clusters {
			if !reached(other) || other == c {
				continue
			}
			if skew := c.Ahead - other.Ahead; skew > maxSkew {
				found = append(found, odd("Correct the clock of one of the two control planes.",
					"The clock of the API server is %s ahead of that of %s, so new tokens may not be valid there yet.",
					skew.Round(time.Second), other.Context))
			}
		}
		return found
	}},
	{
		Name: "crds", About: "the CRDs of the MCS API are installed and served",
		run: func(s *Set, c *Cluster) (found []problem) {
			if s.Pre && len(c.Definitions) == 0 {
				return nil // the installation brings them
			}
			for _, name := range []string{v1beta1.ServiceExportFullName, v1beta1.ServiceImportFullName} {
				switch definition := c.Definitions[name]; {
				case definition == nil:
					found = append(found, wrong("Apply the CRDs: `"+c.apply(manifest.CRDs)+
						"`. Then install the chart with --set crds.install=false.",
						"CustomResourceDefinition %s is missing.", name))
				case !established(definition):
					found = append(found, wrong("Fix the cause that its conditions report: `"+c.kubectl("describe crd %s", name)+
						"`.",
						"CustomResourceDefinition %s is not established.", name))
				}
			}
			if len(found) == 0 && c.MCSVersion == "" {
				found = append(found, wrong(c.apply(manifest.CRDs),
					"The CRDs of the MCS API serve neither v1beta1 nor v1alpha1."))
			}
			return found
		},
	},
	{
		Name: "crds-complete", About: "the CRDs have all fields",
		run: func(_ *Set, c *Cluster) (found []problem) {
			for _, each := range []struct{ name, kind, field string }{
				{v1beta1.ServiceExportFullName, "ServiceExports", "exportedAnnotations"},
				{v1beta1.ServiceImportFullName, "ServiceImports", "trafficDistribution"},
			} {
				if definition := c.Definitions[each.name]; definition != nil && c.MCSVersion != "" &&
					!keeps(definition, c.MCSVersion, each.field) {
					found = append(found, odd(c.apply(manifest.CRDs),
						"The CRDs of the MCS API are outdated: %s lose fields such as %s.", each.kind, each.field))
				}
			}
			return found
		},
	},
	{Name: "namespace", About: "the namespace of the controller exists", run: func(_ *Set, c *Cluster) []problem {
		if c.Namespaces[c.System] == nil {
			return []problem{wrong(c.install(),
				"Namespace %s does not exist: the controller is not installed, or runs in another namespace "+
					"(--system-namespace).", c.System)}
		}
		return nil
	}},
	{Name: "controller", About: "the controller renews its heartbeat", run: func(_ *Set, c *Cluster) []problem {
		fix := "Start clusterset-controller in namespace " + c.System + ". If it runs, find the cause in its logs: `" +
			c.logs() + "`."
		if c.Heartbeat == nil || c.Heartbeat.Spec.RenewTime == nil {
			return []problem{wrong(fix, "The controller has never written a heartbeat to namespace %s.", c.System)}
		}
		if silent := c.Now.Sub(c.Heartbeat.Spec.RenewTime.Time); silent > 15*time.Second {
			return []problem{wrong(fix, "The controller has not renewed its heartbeat for %s.",
				silent.Round(time.Second))}
		}
		return nil
	}},
	{
		Name: "cluster-id", About: "the cluster id is valid and unique",
		run: func(s *Set, c *Cluster) []problem {
			if c.Heartbeat == nil {
				return nil
			}
			if err := names.ValidateID(c.ID); err != nil {
				return []problem{wrong(c.rename(), "%v", err)}
			}
			if other := s.twin(c); other != nil {
				return []problem{wrong(c.rename(), "The cluster of context %s has the id %s, too.", other.Context, c.ID)}
			}
			return nil
		},
	},
}

// twin is another cluster with the same id, nil if there is none.
func (s *Set) twin(c *Cluster) *Cluster {
	for _, other := range s.Clusters {
		if other != c && reached(other) && other.ID == c.ID && other.UID != c.UID {
			return other
		}
	}
	return nil
}

func established(definition *unstructured.Unstructured) bool {
	conditions, _, err := unstructured.NestedSlice(definition.Object, "status", "conditions")
	if err != nil {
		return false
	}
	for _, each := range conditions {
		if condition, ok := each.(map[string]any); ok && condition["type"] == "Established" &&
			condition["status"] == "True" {
			return true
		}
	}
	return false
}

// keeps reports whether a definition has a field of the spec in a version.
func keeps(definition *unstructured.Unstructured, version, field string) bool {
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err != nil {
		return true
	}
	for _, each := range versions {
		one, ok := each.(map[string]any)
		if !ok || one["name"] != version {
			continue
		}
		_, found, err := unstructured.NestedMap(one, strings.Split("schema.openAPIV3Schema.properties.spec.properties."+
			field, ".")...)
		return err == nil && found
	}
	return true
}
