// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// oldestServer is the oldest API server that serves all installed objects:
// ValidatingAdmissionPolicies have been v1 since then.
var oldestServer = version.MustParseGeneric("1.30.0")

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
			if reached(other) && same(other, c) {
				return []problem{wrong("Name each cluster once in --contexts, or point context "+c.Context+
					" to another cluster in your kubeconfig.",
					"Context %s refers to the same cluster.", other.Context)}
			}
		}
		return nil
	}},
	{Name: "crds", About: "the MCS API is served", run: func(_ *Set, c *Cluster) []problem {
		if c.MCSVersion != "" && (c.State == nil || c.State.MCSVersion != "") {
			return nil
		}
		return []problem{wrong(c.applyCRDs(), "The CRDs of the MCS API are missing, or serve neither v1beta1 nor v1alpha1.")}
	}},
	{Name: "crds-complete", About: "the CRDs have all fields", run: func(_ *Set, c *Cluster) []problem {
		if len(c.Lost) == 0 {
			return nil
		}
		return []problem{odd(c.applyCRDs(), "The CRDs of the MCS API are outdated: they lose %s.", strings.Join(c.Lost, " and "))}
	}},
}

// same reports whether two contexts refer to one cluster.
func same(a, b *Cluster) bool { return a.UID != "" && a.UID == b.UID }
