// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/facts"
	"github.com/clusterset-dns/clusterset-dns/controller/accept"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/locality"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// TakeOver is the instruction to adopt a ServiceImport that the controller does
// not manage.
func TakeOver(context, namespace, name string) string {
	command := "kubectl --context " + context + " -n " + namespace
	return fmt.Sprintf("Let the controller adopt it with its IP: `%s annotate serviceimport %s %s=true`. If it is not "+
		"used, delete it: `%s delete serviceimport %s`.",
		command, name, export.AnnotationAdopt, command, name)
}

// acceptHint is the command that accepts a service of a member.
func (e *Explanation) acceptHint(f *facts.Facts, service types.NamespacedName, source *facts.Source) string {
	if own, _ := f.AcceptsOf(source.Member); own != nil {
		text := service.String()
		if before := own.String(); before != "" {
			text = before + "," + text
		}
		return annotateSecret(f, source.Member, accept.Annotation, text)
	}
	return fmt.Sprintf("kubectl --context %s label namespace %s %s=true", f.Context, service.Namespace, accept.Label)
}

// annotateSecret is the command that annotates the Secret of a member.
func annotateSecret(f *facts.Facts, m *facts.Member, key, value string) string {
	return fmt.Sprintf("kubectl --context %s -n %s annotate secret %s %s --overwrite", f.Context, f.System, m.Secret.Name,
		Assign(key, value))
}

// Correct is the command that corrects the invalid annotation of a member's Secret.
func Correct(f *facts.Facts, m *facts.Member) string {
	return annotateSecret(f, m, m.Invalid, map[string]string{
		member.CIDRsAnnotation: "<ranges of its pods>",
		member.RankAnnotation:  "<integer from -1000 to 1000>",
		accept.Annotation:      "<namespaces and namespace/service, separated by commas>",
	}[m.Invalid])
}

// Assign is an argument that sets a label or an annotation, in quotes if a shell requires it.
func Assign(key, value string) string {
	text := key + "=" + value
	if strings.ContainsAny(value, " <>;*?") {
		return "'" + text + "'"
	}
	return text
}

// exported are the values of the exported annotations that decide which endpoints are used, as placeholders.
var exported = map[string]string{
	export.AnnotationPrefer:  "<" + locality.PreferCluster + ", " + locality.PreferNone + ", or tiers of clusters>",
	export.AnnotationWithin:  "<ids and label selectors of clusters>",
	export.AnnotationWeights: "<shares of clusters, such as west=10>",
}

// Exported is the command that corrects an exported annotation, in the context of the cluster whose export decides.
func Exported(context string, service types.NamespacedName, annotation string) string {
	return fmt.Sprintf(`kubectl --context %s -n %s patch serviceexport %s --type merge `+
		`-p '{"spec":{"exportedAnnotations":{"%s":"%s"}}}'`, context, service.Namespace, service.Name, annotation,
		exported[annotation])
}
