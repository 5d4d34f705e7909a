// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"maps"
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
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// problems says what is not as a person would want it, and what to do.
func (e *Explanation) problems(f *facts.Facts, service types.NamespacedName, sources []facts.Source, serviceImport *v1beta1.ServiceImport, account merge.Account) {
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
	if account.Conflict != "" {
		e.problem(agree(f, service, account), "%s", account.Conflict)
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
		e.problem(checkBoth(f, source.Cluster), "%s is stale: %s heard it last %s. Its controller or its API server is down, or the way to it is cut.", source.Cluster, f.ID, e.heard(source))
	case source.State == liveness.Gone:
		e.problem(checkBoth(f, source.Cluster), "%s is gone: %s heard it last %s, too long ago for it to count.", source.Cluster, f.ID, e.heard(source))
	case source.Behind() && f.Namespaces[service.Namespace] != nil:
		e.problem(checkBoth(f, source.Cluster), "%s publishes something else than what is here: the controller of %s has not read or written it (yet).", source.Cluster, f.ID)
	}
	for _, problem := range source.Problems {
		switch problem.Reason {
		case export.ReasonForeignAddress:
			e.problem(fmt.Sprintf("kubectl --context %s -n %s annotate secret %s %s=%s,<range of that address> --overwrite",
				f.Context, f.System, source.Member.Secret.Name, member.CIDRsAnnotation, source.Member.Secret.Annotations[member.CIDRsAnnotation]),
				"An endpoint of %s is refused: %s, which are %s by the annotation %s on Secret %s. If that address is one of its pods', add their range; else correct the endpoint in %s.",
				source.Cluster, problem.Message, source.Member.Secret.Annotations[member.CIDRsAnnotation], member.CIDRsAnnotation, source.Member.Secret.Name, source.Cluster)
		default:
			e.problem("Correct the object in "+source.Cluster+".", "Something of %s is left out: %s.", source.Cluster, problem)
		}
	}
}

// checkBoth is the command that looks at both ends of the way to a member.
func checkBoth(f *facts.Facts, cluster string) string {
	command := "kubectl clusterset check --contexts " + f.Context
	if context := f.ContextOf(cluster); cluster != f.ID {
		command += "," + context
	}
	return command
}

// agree says what to change where for the exports to agree.
func agree(f *facts.Facts, service types.NamespacedName, account merge.Account) string {
	var changes []string
	dissenting := map[string]bool{}
	for _, property := range account.Properties {
		for _, dissent := range property.Dissent {
			object := "Service"
			if strings.HasPrefix(property.Field, "exported") {
				object = "ServiceExport"
			}
			what := fmt.Sprintf("give %s %s in %s the %s %s", object, service, dissent.Cluster, property.Field, quoteEmpty(property.Value))
			if property.Field == "type" {
				what = fmt.Sprintf("make Service %s in %s anew, with a cluster IP", service, dissent.Cluster)
				if property.Value == string(v1beta1.Headless) {
					what = fmt.Sprintf("make Service %s in %s anew, with clusterIP: None", service, dissent.Cluster)
				}
			}
			changes = append(changes, what)
			dissenting[dissent.Cluster] = true
		}
	}
	var contexts []string
	for _, cluster := range slices.Sorted(maps.Keys(dissenting)) {
		contexts = append(contexts, f.ContextOf(cluster))
	}
	if len(changes) == 0 {
		return "Make the Services, and the ServiceExports, the same in all clusters."
	}
	text := strings.Join(changes, "; ")
	return strings.ToUpper(text[:1]) + text[1:] + fmt.Sprintf(". Or share it there no more: `kubectl clusterset unexport %s --contexts %s`.", service, strings.Join(contexts, ","))
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
			why = f.ID + " has no namespace " + service.Namespace
		case slices.ContainsFunc(sources, func(s facts.Source) bool { return s.View != nil || s.Published != nil }):
			why = "its controller has not written it (yet)"
		case len(sources) > 0:
			why = "no export of it is valid"
		}
		e.Summary = fmt.Sprintf("%s is not imported in %s, because %s. Its name does not exist there.", service, f.ID, why)
		return
	}
	counts := map[string]int{}
	for _, endpoint := range e.Endpoints {
		counts[endpoint.State]++
	}
	var others []string
	for _, state := range []string{Demoted, NotReady, Unused, Refused, NotHere} {
		if counts[state] > 0 {
			others = append(others, fmt.Sprintf("%d %s", counts[state], state))
		}
	}
	traffic := fmt.Sprintf("%d endpoints get its traffic", counts[Used])
	switch counts[Used] {
	case 0:
		traffic = "No endpoint gets its traffic"
	case 1:
		traffic = "1 endpoint gets its traffic"
	}
	if len(others) > 0 {
		traffic += "; these do not: " + strings.Join(others, ", ")
	}
	switch {
	case serviceImport.Spec.Type == v1beta1.Headless:
		e.Summary = fmt.Sprintf("%s is headless: it leads to the addresses of its endpoints.", e.Name)
	case len(serviceImport.Spec.IPs) == 0:
		e.Summary = fmt.Sprintf("%s has no IP in %s.", e.Name, f.ID)
	default:
		e.Summary = fmt.Sprintf("%s leads to %s, which is its IP in %s; each cluster has its own.", e.Name, strings.Join(serviceImport.Spec.IPs, " and "), f.ID)
	}
	e.Summary += " " + traffic + "."
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
	expected := e.expect(answer.Type == "AAAA")
	got := slices.Clone(answer.Records)
	slices.SortFunc(got, compareAddresses)
	slices.SortFunc(expected, compareAddresses)
	answer.Records = got
	out := Answer{Answer: answer, Expected: expected, Wrong: !slices.Equal(got, expected)}
	if out.Wrong && e.part && len(got) > 0 && !slices.ContainsFunc(got, func(address string) bool { return !slices.Contains(expected, address) }) {
		out.Wrong, out.Part = false, true
	}
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

// ExpectedText is what it should say, for people.
func (a Answer) ExpectedText() string { return orNothing(a.Expected) }

func orNothing(records []string) string {
	if len(records) == 0 {
		return "with no records"
	}
	return strings.Join(records, " ")
}
