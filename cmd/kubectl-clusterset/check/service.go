// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/explain"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/facts"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

var serviceChecks = []Check{
	{Name: "exports-valid", About: "all ServiceExports are valid", run: func(_ *Set, c *Cluster) (found []problem) {
		for i := range c.Exports {
			if c.leaving(&c.Exports[i]) {
				continue
			}
			if valid := conditionOf(c.Exports[i].Status.Conditions,
				v1beta1.ServiceExportConditionValid); valid != nil && valid.Status == metav1.ConditionFalse {
				fix := "kubectl clusterset unexport " + nameOf(&c.Exports[i]) + " --contexts " + c.Context + c.system()
				if valid.Reason == string(v1beta1.ServiceExportReasonNoService) {
					fix = "Create the Service, or: `" + fix + "`."
				}
				found = append(found, wrong(fix, "%s is not exported: %s", nameOf(&c.Exports[i]), valid.Message))
			}
		}
		return found
	}},
	{
		Name: "exports-seen", About: "the controller has reconciled all ServiceExports",
		run: func(_ *Set, c *Cluster) (found []problem) {
			for i := range c.Exports {
				each := &c.Exports[i]
				// The implementation that has the import writes the conditions of the export.
				serviceImport := c.Import(types.NamespacedName{Namespace: each.Namespace, Name: each.Name})
				if !c.leaving(each) && (serviceImport == nil || export.IsManaged(serviceImport)) &&
					conditionOf(each.Status.Conditions, v1beta1.ServiceExportConditionValid) == nil {
					found = append(found, wrong(c.cause(),
						"The controller has not reconciled ServiceExport %s.", nameOf(each)))
				}
			}
			return found
		},
	},
	ranks,
	{
		Name: "exports-agree", About: "exports of different clusters do not conflict",
		run: func(s *Set, c *Cluster) (found []problem) {
			for i := range c.Exports {
				if c.leaving(&c.Exports[i]) {
					continue
				}
				if conflict := conditionOf(c.Exports[i].Status.Conditions,
					v1beta1.ServiceExportConditionConflict); conflict != nil &&
					conflict.Status == metav1.ConditionTrue {
					found = append(found, odd("Resolve the conflict: `kubectl clusterset explain "+nameOf(&c.Exports[i])+
						" --contexts "+strings.Join(s.contexts(c), ",")+s.flag()+c.system()+
						"` lists the changes.", "%s: %s", nameOf(&c.Exports[i]), conflict.Message))
				}
			}
			return found
		},
	},
	{Name: "imports-ready", About: "all imports are ready", run: func(_ *Set, c *Cluster) (found []problem) {
		for i := range c.Imports {
			each := &c.Imports[i]
			ready := conditionOf(each.Status.Conditions, v1beta1.ServiceImportConditionReady)
			if c.leaving(each) || !export.IsManaged(each) || ready != nil && ready.Status == metav1.ConditionTrue {
				continue
			}
			what, fix := "the controller has not reported its status", c.cause()
			if ready != nil {
				what = strings.TrimSuffix(ready.Message, ".")
				switch ready.Reason {
				case merge.ReasonForeignService:
					fix = c.kubectl("-n %s delete service %s", each.Namespace,
						each.Annotations[export.AnnotationDerivedService])
				case merge.ReasonNameCollision:
					fix = "Export one of the two Services under another name, in all clusters that export it."
				case string(v1beta1.ServiceImportReasonIPFamilyNotSupported):
					fix = "In the clusters that export it, give the Service an IP family that this cluster supports."
				case merge.ReasonClusterIPLimit:
					fix = "Export fewer services as ClusterSetIP."
				case string(v1beta1.ServiceImportReasonPending):
				default: // what the API server says
					fix = "Fix what the API server reports, or change the Service in the clusters that export it."
				}
			}
			found = append(found, wrong(fix, "Import %s is not ready: %s.", nameOf(each), what))
		}
		return found
	}},
	{
		Name: "imports-foreign", About: "no foreign ServiceImport blocks an import",
		run: func(_ *Set, c *Cluster) (found []problem) {
			for i := range c.Imports {
				each := &c.Imports[i]
				if !export.IsManaged(each) && len(
					facts.Contributions(c.Sources[types.NamespacedName{
						Namespace: each.Namespace,
						Name:      each.Name,
					}])) > 0 {
					found = append(found, wrong(explain.TakeOver(c.Context, each.Namespace, each.Name),
						"The controller does not manage ServiceImport %s, so exports with this name are not imported.", nameOf(each)))
				}
			}
			return found
		},
	},
	{
		Name: "namespaces", About: "the namespace of each exported service exists and is of the cluster set",
		run: func(_ *Set, c *Cluster) (found []problem) {
			lacking := map[string]int{}
			for service := range c.Sources {
				if !c.Takes(service.Namespace) && !c.Denied(service.Namespace) {
					lacking[service.Namespace]++
				}
			}
			for _, namespace := range slices.Sorted(maps.Keys(lacking)) {
				if c.Elsewhere(namespace) {
					found = append(found, odd(c.moveNamespace(namespace),
						"Namespace %s belongs to %s, so exports of %s are not imported into it (services: %d).", namespace,
						export.Set(c.Namespaces[namespace].Labels[export.LabelSet]), c.Set, lacking[namespace]))
					continue
				}
				found = append(found, odd(c.kubectl("create namespace %s", namespace),
					"Namespace %s does not exist, so its exports are not imported (services: %d).",
					namespace, lacking[namespace]))
			}
			return found
		},
	},
	ofSources("endpoints-refused", "everything that members publish is accepted",
		func(_ *Set, c *Cluster, service types.NamespacedName, source *facts.Source) (found []problem) {
			for _, each := range source.Problems {
				fix := "Correct the object in " + source.Cluster + "."
				if each.Reason == export.ReasonForeignAddress && source.Member.Secret != nil {
					fix = c.confine(source.Member, strings.Join(texts(source.Member.CIDRs), ",")+
						",<range of that address>")
				}
				found = append(found, wrong(fix, "Part of %s from %s is not imported: %s.", service, source.Cluster,
					each))
			}
			return found
		}),
	ofSources("in-step", "imports match what members publish", func(_ *Set, c *Cluster, service types.NamespacedName,
		source *facts.Source,
	) []problem {
		serviceImport := c.Import(service)
		if !source.Behind() || !c.Takes(service.Namespace) ||
			serviceImport != nil && !export.IsManaged(serviceImport) {
			return nil
		}
		return []problem{odd(c.cause(),
			"The import of %s differs from what %s publishes. If this persists, the controller cannot read or write.",
			service, source.Cluster)}
	}),
	{
		Name: "left-behind", About: "no slices of former members are left",
		run: func(_ *Set, c *Cluster) (found []problem) {
			left := map[string]int{}
			for _, slice := range c.Slices {
				source := slice.Labels[export.LabelSourceCluster]
				if export.IsManaged(slice) && source != c.ID && c.Member(source) == nil && c.SecretsUnseen == nil {
					left[source]++
				}
			}
			for _, source := range slices.Sorted(maps.Keys(left)) {
				found = append(found, odd(c.kubectl("delete endpointslices -A -l '%s=%s,%s=%s,%s'",
					export.LabelSourceCluster, source, export.LabelSliceManagedBy, c.Set.Manager(), c.Set.Selector()),
					"%d EndpointSlices of %s are left, which is not a member.", left[source], source))
			}
			return found
		},
	},
}

// ofSources is a check of each export of a member.
func ofSources(name, about string, run func(*Set, *Cluster, types.NamespacedName, *facts.Source) []problem) Check {
	return Check{Name: name, About: about, run: func(s *Set, c *Cluster) (found []problem) {
		services := slices.SortedFunc(maps.Keys(c.Sources),
			func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) })
		for _, service := range services {
			for i := range c.Sources[service] {
				if source := &c.Sources[service][i]; !source.Own {
					found = append(found, run(s, c, service, source)...)
				}
			}
		}
		return found
	}}
}

// contexts are those of all reachable clusters, the given one first.
func (s *Set) contexts(first *Cluster) []string {
	names := []string{first.Context}
	for _, c := range s.Clusters {
		if reached(c) && c != first {
			names = append(names, c.Context)
		}
	}
	return names
}

// leaving reports whether an object is being deleted, alone or with its namespace.
// The controller withdraws it.
func (c *Cluster) leaving(object metav1.Object) bool {
	namespace := c.Namespaces[object.GetNamespace()]
	return object.GetDeletionTimestamp() != nil || namespace != nil && namespace.DeletionTimestamp != nil
}

func nameOf(object metav1.Object) string { return object.GetNamespace() + "/" + object.GetName() }

func conditionOf[T ~string](conditions []metav1.Condition, kind T) *metav1.Condition {
	return meta.FindStatusCondition(conditions, string(kind))
}
