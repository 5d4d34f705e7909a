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
	{Name: "exports-valid", About: "all ServiceExports count", run: func(_ *Set, c *Cluster) (found []problem) {
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
		Name: "exports-seen", About: "the controller has looked at all ServiceExports",
		run: func(_ *Set, c *Cluster) (found []problem) {
			for i := range c.Exports {
				each := &c.Exports[i]
				// The implementation that has the import writes the conditions of the export.
				serviceImport := c.Import(types.NamespacedName{Namespace: each.Namespace, Name: each.Name})
				if !c.leaving(each) && (serviceImport == nil || export.IsManaged(serviceImport)) &&
					conditionOf(each.Status.Conditions, v1beta1.ServiceExportConditionValid) == nil {
					found = append(found, wrong("Have the controller look at it. "+c.log(),
						"The controller has not looked at ServiceExport %s.", nameOf(each)))
				}
			}
			return found
		},
	},
	{
		Name: "exports-agree", About: "the exports of all clusters agree",
		run: func(s *Set, c *Cluster) (found []problem) {
			for i := range c.Exports {
				if c.leaving(&c.Exports[i]) {
					continue
				}
				if conflict := conditionOf(c.Exports[i].Status.Conditions,
					v1beta1.ServiceExportConditionConflict); conflict != nil &&
					conflict.Status == metav1.ConditionTrue {
					found = append(found, odd("Make them agree: `kubectl clusterset explain "+nameOf(&c.Exports[i])+
						" --contexts "+strings.Join(s.contexts(c), ",")+s.flag()+c.system()+
						"` says what to change where.", "%s: %s", nameOf(&c.Exports[i]), conflict.Message))
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
			what, fix := "the controller has not said anything of it", "Have the controller look at it. "+c.log()
			if ready != nil {
				what = strings.TrimSuffix(ready.Message, ".")
				switch ready.Reason {
				case merge.ReasonForeignService:
					fix = c.kubectl("-n %s delete service %s", each.Namespace,
						each.Annotations[export.AnnotationDerivedService])
				case merge.ReasonNameCollision:
					fix = "Export one of the two Services under another name, in all clusters that export it."
				case string(v1beta1.ServiceImportReasonIPFamilyNotSupported):
					fix = "Give the Service an IP family that this cluster has, in the clusters that export it."
				case merge.ReasonClusterIPLimit:
					fix = "Raise --max-import-ips of the controller, or export fewer services as ClusterSetIP."
				case string(v1beta1.ServiceImportReasonPending):
				default: // what the API server says
					fix = "Do what the API server asks for, or change the Service in the clusters that export it."
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
						"ServiceImport %s was not made by the controller, so that what clusters export under that name is not imported.", nameOf(each)))
				}
			}
			return found
		},
	},
	{
		Name: "namespaces", About: "each exported service has its namespace",
		run: func(_ *Set, c *Cluster) (found []problem) {
			lacking := map[string]int{}
			for service := range c.Sources {
				if c.Namespaces[service.Namespace] == nil && !c.Denied(service.Namespace) {
					lacking[service.Namespace]++
				}
			}
			for _, namespace := range slices.Sorted(maps.Keys(lacking)) {
				found = append(found, odd(c.kubectl("create namespace %s", namespace),
					"There is no namespace %s, so that what is exported of it is not imported (services: %d).",
					namespace, lacking[namespace]))
			}
			return found
		},
	},
	ofSources("endpoints-refused", "nothing that members publish is refused",
		func(_ *Set, c *Cluster, service types.NamespacedName, source *facts.Source) (found []problem) {
			for _, each := range source.Problems {
				fix := "Correct it in " + source.Cluster + "."
				if each.Reason == export.ReasonForeignAddress && source.Member.Secret != nil {
					fix = c.confine(source.Member, strings.Join(texts(source.Member.CIDRs), ",")+
						",<range of that address>")
				}
				found = append(found, wrong(fix, "Something of %s in %s is left out: %s.", service, source.Cluster,
					each))
			}
			return found
		}),
	ofSources("in-step", "what members publish is here", func(_ *Set, c *Cluster, service types.NamespacedName,
		source *facts.Source,
	) []problem {
		serviceImport := c.Import(service)
		if !source.Behind() || !c.Takes(service.Namespace) ||
			serviceImport != nil && !export.IsManaged(serviceImport) {
			return nil
		}
		return []problem{odd("Have the controller read "+source.Cluster+" and write what it reads. "+c.log(),
			"What %s publishes of %s is not what is here; if this stays, the controller does not read it or cannot write.", source.Cluster, service)}
	}),
	{
		Name: "left-behind", About: "nothing is left of clusters that are no members",
		run: func(_ *Set, c *Cluster) (found []problem) {
			left := map[string]int{}
			for _, slice := range c.Slices {
				source := slice.Labels[export.LabelSourceCluster]
				if export.IsManaged(slice) && source != c.ID && c.Member(source) == nil && c.SecretsUnseen == nil {
					left[source]++
				}
			}
			for _, source := range slices.Sorted(maps.Keys(left)) {
				found = append(found, odd(c.kubectl("delete endpointslices -A -l %s=%s,%s=%s",
					export.LabelSourceCluster,
					source, export.LabelSliceManagedBy, export.Manager),
					"%d EndpointSlices of %s are here, which is no member.", left[source], source))
			}
			return found
		},
	},
}

// ofSources is a check of what each member says of each service.
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

// contexts are those of all clusters that were reached, the given one first.
func (s *Set) contexts(first *Cluster) []string {
	names := []string{first.Context}
	for _, c := range s.Clusters {
		if reached(c) && c != first {
			names = append(names, c.Context)
		}
	}
	return names
}

// leaving tells whether an object is being deleted, alone or with its namespace.
// The controller withdraws what it stands for.
func (c *Cluster) leaving(object metav1.Object) bool {
	namespace := c.Namespaces[object.GetNamespace()]
	return object.GetDeletionTimestamp() != nil || namespace != nil && namespace.DeletionTimestamp != nil
}

func nameOf(object metav1.Object) string { return object.GetNamespace() + "/" + object.GetName() }

func conditionOf[T ~string](conditions []metav1.Condition, kind T) *metav1.Condition {
	return meta.FindStatusCondition(conditions, string(kind))
}
