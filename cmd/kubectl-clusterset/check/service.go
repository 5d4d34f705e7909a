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

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/facts"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

var serviceChecks = []Check{
	{Name: "exports-valid", About: "all ServiceExports count", run: func(_ *Set, c *Cluster) (found []problem) {
		for i := range c.Exports {
			if valid := conditionOf(c.Exports[i].Status.Conditions, v1beta1.ServiceExportConditionValid); valid != nil && valid.Status == metav1.ConditionFalse {
				found = append(found, wrong("kubectl clusterset unexport "+nameOf(&c.Exports[i])+" --contexts "+c.Context, "%s is not exported: %s", nameOf(&c.Exports[i]), valid.Message))
			}
		}
		return found
	}},
	{Name: "exports-seen", About: "the controller has looked at all ServiceExports", run: func(_ *Set, c *Cluster) (found []problem) {
		for i := range c.Exports {
			if conditionOf(c.Exports[i].Status.Conditions, v1beta1.ServiceExportConditionValid) == nil {
				found = append(found, wrong(c.kubectl("-n %s logs deployment/clusterset-controller", c.System), "The controller has not looked at ServiceExport %s.", nameOf(&c.Exports[i])))
			}
		}
		return found
	}},
	{Name: "exports-agree", About: "the exports of all clusters agree", run: func(_ *Set, c *Cluster) (found []problem) {
		for i := range c.Exports {
			if conflict := conditionOf(c.Exports[i].Status.Conditions, v1beta1.ServiceExportConditionConflict); conflict != nil && conflict.Status == metav1.ConditionTrue {
				found = append(found, odd("kubectl clusterset explain "+nameOf(&c.Exports[i])+" --contexts "+c.Context, "%s: %s", nameOf(&c.Exports[i]), conflict.Message))
			}
		}
		return found
	}},
	{Name: "imports-ready", About: "all imports are ready", run: func(_ *Set, c *Cluster) (found []problem) {
		for i := range c.Imports {
			each := &c.Imports[i]
			ready := conditionOf(each.Status.Conditions, v1beta1.ServiceImportConditionReady)
			if !export.IsManaged(each) || ready != nil && ready.Status == metav1.ConditionTrue {
				continue
			}
			what, mend := "the controller has not said anything of it", "kubectl clusterset explain "+nameOf(each)+" --contexts "+c.Context
			if ready != nil {
				what = strings.TrimSuffix(ready.Message, ".")
				if ready.Reason == merge.ReasonForeignService {
					mend = c.kubectl("-n %s delete service %s", each.Namespace, each.Annotations[export.AnnotationDerivedService])
				}
			}
			found = append(found, wrong(mend, "Import %s is not ready: %s.", nameOf(each), what))
		}
		return found
	}},
	{Name: "imports-foreign", About: "nothing stands in the way of an import", run: func(_ *Set, c *Cluster) (found []problem) {
		for i := range c.Imports {
			each := &c.Imports[i]
			if !export.IsManaged(each) && len(facts.Contributions(c.Sources[types.NamespacedName{Namespace: each.Namespace, Name: each.Name}])) > 0 {
				found = append(found, wrong(c.kubectl("-n %s delete serviceimport %s", each.Namespace, each.Name), "ServiceImport %s was not made by the controller, so that what clusters export under that name is not imported.", nameOf(each)))
			}
		}
		return found
	}},
	{Name: "namespaces", About: "each exported service has its namespace", run: func(_ *Set, c *Cluster) (found []problem) {
		lacking := map[string]int{}
		for service := range c.Sources {
			if c.Namespaces[service.Namespace] == nil {
				lacking[service.Namespace]++
			}
		}
		for _, namespace := range slices.Sorted(maps.Keys(lacking)) {
			found = append(found, odd(c.kubectl("create namespace %s", namespace), "There is no namespace %s, so that %d services of it are not imported.", namespace, lacking[namespace]))
		}
		return found
	}},
	ofSources("endpoints-refused", "nothing that members publish is refused", func(_ *Set, c *Cluster, service types.NamespacedName, source *facts.Source) (found []problem) {
		for _, each := range source.Problems {
			found = append(found, wrong("kubectl clusterset explain "+service.String()+" --contexts "+c.Context, "Something of %s in %s is left out: %s.", service, source.Cluster, each))
		}
		return found
	}),
	ofSources("in-step", "what members publish is here", func(_ *Set, c *Cluster, service types.NamespacedName, source *facts.Source) []problem {
		serviceImport := c.Import(service)
		if !source.Behind() || c.Namespaces[service.Namespace] == nil || strings.HasPrefix(service.Namespace, "kube-") ||
			serviceImport != nil && !export.IsManaged(serviceImport) {
			return nil
		}
		return []problem{odd(c.kubectl("-n %s logs deployment/clusterset-controller", c.System), "What %s publishes of %s is not what is here; if this stays, the controller does not read it or cannot write.", source.Cluster, service)}
	}),
	{Name: "left-behind", About: "nothing is left of clusters that are no members", run: func(_ *Set, c *Cluster) (found []problem) {
		left := map[string]int{}
		for _, slice := range c.Slices {
			source := slice.Labels[export.LabelSourceCluster]
			if export.IsManaged(slice) && source != c.ID && c.Member(source) == nil && c.SecretsUnseen == nil {
				left[source]++
			}
		}
		for _, source := range slices.Sorted(maps.Keys(left)) {
			found = append(found, odd(c.kubectl("delete endpointslices -A -l %s=%s,%s=%s", export.LabelSourceCluster, source, export.LabelSliceManagedBy, export.Manager),
				"%d EndpointSlices of %s are here, which is no member.", left[source], source))
		}
		return found
	}},
}

// ofSources is a check of what each member says of each service.
func ofSources(name, about string, run func(*Set, *Cluster, types.NamespacedName, *facts.Source) []problem) Check {
	return Check{Name: name, About: about, run: func(s *Set, c *Cluster) (found []problem) {
		services := slices.SortedFunc(maps.Keys(c.Sources), func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) })
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

func nameOf(object metav1.Object) string { return object.GetNamespace() + "/" + object.GetName() }

func conditionOf[T ~string](conditions []metav1.Condition, kind T) *metav1.Condition {
	return meta.FindStatusCondition(conditions, string(kind))
}
