// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/dns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/facts"
	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
)

// problems says what is not as a person would want it, and what to do.
func (e *Explanation) problems(f *facts.Facts, service types.NamespacedName, sources []facts.Source, serviceImport *v1beta1.ServiceImport, conflict string) {
	exporting := slices.ContainsFunc(sources, func(s facts.Source) bool { return s.View != nil || s.Published != nil })
	if exporting && f.Namespaces[service.Namespace] == nil {
		e.problem(fmt.Sprintf("kubectl --context %s create namespace %s", f.Context, service.Namespace),
			"There is no namespace %s in %s, and a service is imported only where its namespace is.", service.Namespace, f.ID)
	}
	if len(sources) == 0 {
		e.nobody(f, service)
	}
	for i := range sources {
		e.ofSource(f, service, &sources[i])
	}
	if conflict != "" {
		e.problem("Make the Services, or the ServiceExports, the same in all clusters; the oldest export wins until then.", "%s", conflict)
	}
	for i := range f.Members {
		if m := &f.Members[i]; m.Unread != nil {
			e.problem(fmt.Sprintf("kubectl clusterset check --contexts %s", f.Context),
				"What %s publishes now could not be read, so that what is here of it is all that is known: %v", m.ID, m.Unread)
		}
	}
	if serviceImport == nil {
		return
	}
	ready := meta.FindStatusCondition(serviceImport.Status.Conditions, string(v1beta1.ServiceImportConditionReady))
	switch {
	case !export.IsManaged(serviceImport) && exporting:
		e.problem(fmt.Sprintf("kubectl --context %s -n %s delete serviceimport %s", f.Context, service.Namespace, service.Name),
			"ServiceImport %s in %s was not made by the controller, which leaves it alone and imports nothing.", service, f.ID)
	case ready != nil && ready.Status != metav1.ConditionTrue:
		e.problem(importHint(f, service, ready.Reason), "The import is not ready in %s: %s", f.ID, ready.Message)
	}
}

func importHint(f *facts.Facts, service types.NamespacedName, reason string) string {
	if reason == "ForeignService" {
		return fmt.Sprintf("kubectl --context %s -n %s delete service %s", f.Context, service.Namespace, export.DerivedServiceName(service))
	}
	return fmt.Sprintf("kubectl clusterset check --contexts %s", f.Context)
}

// nobody says why no cluster says anything of the service.
func (e *Explanation) nobody(f *facts.Facts, service types.NamespacedName) {
	if slices.ContainsFunc(f.Services, func(s corev1.Service) bool { return s.Namespace == service.Namespace && s.Name == service.Name }) {
		e.problem(fmt.Sprintf("kubectl clusterset export %s --contexts %s", service, f.Context),
			"No cluster exports %s. There is such a Service in %s, but without a ServiceExport it is not shared.", service, f.ID)
		return
	}
	e.problem(fmt.Sprintf("kubectl clusterset export %s --contexts <context of a cluster that has the Service>", service),
		"No cluster exports %s, and there is no such Service in %s. Export it in a cluster that has it.", service, f.ID)
}

// ofSource says what is wrong with the word of one cluster.
func (e *Explanation) ofSource(f *facts.Facts, service types.NamespacedName, source *facts.Source) {
	switch {
	case source.Invalid != nil:
		e.problem(invalidHint(f, service, source.Invalid.Reason), "%s does not export it: %s", source.Cluster, source.Invalid.Message)
	case source.State == liveness.Stale:
		e.problem(fmt.Sprintf("kubectl clusterset check --contexts %s", f.Context),
			"%s is stale: its heartbeat was last heard %s.", source.Cluster, e.heard(source))
	case source.State == liveness.Gone:
		e.problem(fmt.Sprintf("kubectl clusterset check --contexts %s", f.Context), "%s is gone: its heartbeat was last heard %s.", source.Cluster, e.heard(source))
	case source.Behind() && f.Namespaces[service.Namespace] != nil:
		e.problem(fmt.Sprintf("kubectl clusterset check --contexts %s", f.Context),
			"%s publishes something else than what is here: the controller has not read or written it (yet).", source.Cluster)
	}
	for _, problem := range source.Problems {
		switch problem.Reason {
		case export.ReasonForeignAddress:
			e.problem(fmt.Sprintf("kubectl --context %s -n %s annotate secret %s clusterset-dns.github.io/cidrs=<ranges of its pods> --overwrite", f.Context, f.System, source.Member.Secret.Name),
				"An endpoint of %s is refused: %s, which the annotation cidrs on Secret %s gives. Correct the annotation, or the endpoint.", source.Cluster, problem.Message, source.Member.Secret.Name)
		default:
			e.problem("Correct the object in "+source.Cluster+".", "Something of %s is left out: %s.", source.Cluster, problem)
		}
	}
}

func invalidHint(f *facts.Facts, service types.NamespacedName, reason string) string {
	switch reason {
	case string(v1beta1.ServiceExportReasonNoService), string(v1beta1.ServiceExportReasonInvalidServiceType), export.InvalidName, controller.InvalidDenied:
		return fmt.Sprintf("kubectl clusterset unexport %s --contexts %s", service, f.Context)
	}
	return ""
}

// summary says in one or two sentences what comes of it.
func (e *Explanation) summary(f *facts.Facts, service types.NamespacedName, sources []facts.Source, serviceImport *v1beta1.ServiceImport) {
	if serviceImport == nil {
		why := "no cluster exports it"
		switch {
		case f.Namespaces[service.Namespace] == nil && len(sources) > 0:
			why = "it has no namespace " + service.Namespace
		case len(sources) > 0 && slices.ContainsFunc(sources, func(s facts.Source) bool { return s.View != nil || s.Published != nil }):
			why = "its controller has not written it (yet)"
		}
		e.Summary = fmt.Sprintf("%s is not imported in %s, because %s. Its name does not exist there.", service, f.ID, why)
		return
	}
	counts := map[string]int{}
	for _, endpoint := range e.Endpoints {
		counts[endpoint.State]++
	}
	var parts []string
	for _, state := range []string{Used, Demoted, NotReady, Unused, Refused, NotHere} {
		if counts[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[state], state))
		}
	}
	behind := "no endpoints"
	if len(parts) > 0 {
		behind = "endpoints: " + strings.Join(parts, ", ")
	}
	switch {
	case serviceImport.Spec.Type == v1beta1.Headless:
		e.Summary = fmt.Sprintf("%s leads to the addresses of its endpoints, %d of them.", e.Name, len(e.expected))
	case len(serviceImport.Spec.IPs) == 0:
		e.Summary = fmt.Sprintf("%s has no IP in %s.", e.Name, f.ID)
	default:
		e.Summary = fmt.Sprintf("%s leads to %s, an IP of %s alone.", e.Name, strings.Join(serviceImport.Spec.IPs, " and "), f.ID)
	}
	e.Summary += " Behind it are " + behind + "."
}

// Types are the types of records to ask for.
func (e *Explanation) Types() []string {
	types := []string{"A"}
	if slices.ContainsFunc(e.expected, func(address string) bool { return strings.Contains(address, ":") }) {
		types = append(types, "AAAA")
	}
	return types
}

// Answered adds what a server said, and a problem where that is not what it
// should be.
func (e *Explanation) Answered(server string, answer dns.Answer) {
	e.Asked = server
	expected := []string{}
	for _, address := range e.expected {
		if strings.Contains(address, ":") == (answer.Type == "AAAA") {
			expected = append(expected, address)
		}
	}
	got := slices.Clone(answer.Records)
	slices.SortFunc(got, compareAddresses)
	slices.SortFunc(expected, compareAddresses)
	answer.Records = got
	out := Answer{Answer: answer, Expected: expected, Wrong: !slices.Equal(got, expected)}
	if e.Import != nil && answer.Rcode == "NXDOMAIN" && answer.Type == "A" {
		out.Wrong = true
	}
	if out.Wrong {
		e.problem(fmt.Sprintf("kubectl clusterset check --contexts %s", e.Context),
			"DNS answers %s for %s %s, and should answer %s.", answer.Text(), answer.Name, answer.Type, orNothing(expected))
	}
	e.Answers = append(e.Answers, out)
}

// Unanswered notes that DNS could not be asked.
func (e *Explanation) Unanswered(err error) {
	e.problem("Name the address of the cluster's DNS with --dns.", "DNS was not asked: %v.", err)
}

func orNothing(records []string) string {
	if len(records) == 0 {
		return "with no records"
	}
	return strings.Join(records, " ")
}
