// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/dns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/facts"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/input"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// problems says what is not as a person would want it, and what to do.
func (e *Explanation) problems(f *facts.Facts, service types.NamespacedName, sources []facts.Source,
	serviceImport *v1beta1.ServiceImport, account merge.Account,
) {
	exporting := slices.ContainsFunc(sources, func(s facts.Source) bool { return s.View != nil || s.Published != nil })
	if exporting && f.Namespaces[service.Namespace] == nil {
		e.problem(fmt.Sprintf("kubectl --context %s create namespace %s", f.Context, service.Namespace),
			"Namespace %q does not exist in %s; services are imported only into namespaces that exist.",
			service.Namespace, f.ID)
	}
	if len(sources) == 0 {
		e.nobody(f, service)
	}
	for i := range sources {
		e.ofSource(f, service, &sources[i])
	}
	if account.Conflict != "" {
		e.problem(e.agree(f, service, account), "%s", account.Conflict)
	}
	for i := range f.Members {
		if m := &f.Members[i]; m.Unread != nil {
			e.problem(e.check(f.Context),
				"What %s publishes now could not be read, so that what is here of it is all that is known: %v", m.ID,
				m.Unread)
		}
	}
	if serviceImport == nil {
		return
	}
	ready := meta.FindStatusCondition(serviceImport.Status.Conditions, string(v1beta1.ServiceImportConditionReady))
	switch {
	case !export.IsManaged(serviceImport) && exporting:
		e.problem(TakeOver(f.Context, service.Namespace, service.Name),
			"ServiceImport %s in %s was not made by the controller, which leaves it alone and imports nothing.",
			service, f.ID)
	case ready != nil && ready.Status != metav1.ConditionTrue:
		e.problem(e.importHint(f, service, ready.Reason), "The import is not ready in %s: %s", f.ID, ready.Message)
	}
	if export.IsManaged(serviceImport) && len(account.Precedence) > 0 {
		e.unserved(f, service, account.Precedence)
	}
}

// unserved says that nobody serves a service that is imported, as far as
// nothing else says why.
func (e *Explanation) unserved(f *facts.Facts, service types.NamespacedName, exporting []string) {
	if slices.ContainsFunc(e.Endpoints, func(each Endpoint) bool { return each.State != NotReady }) {
		return
	}
	var look []string
	for _, cluster := range exporting {
		look = append(look, fmt.Sprintf("kubectl --context %s -n %s get pods", f.ContextOf(cluster), service.Namespace))
	}
	e.problem(strings.Join(look, "; "), "No endpoint of %s is ready in any cluster.", service.Name)
}

// check is the command that looks at clusters.
func (e *Explanation) check(contexts string) string {
	return "kubectl clusterset check --contexts " + contexts + e.zone + e.system
}

// TakeOver says how an import that another one made becomes the controller's.
func TakeOver(context, namespace, name string) string {
	command := "kubectl --context " + context + " -n " + namespace
	return fmt.Sprintf("Have the controller take it over, with its IP: `%s annotate serviceimport %s %s=true`. Or, if nobody uses it: `%s delete serviceimport %s`.",
		command, name, export.AnnotationAdopt, command, name)
}

func (e *Explanation) importHint(f *facts.Facts, service types.NamespacedName, reason string) string {
	if reason == merge.ReasonForeignService {
		return fmt.Sprintf("kubectl --context %s -n %s delete service %s", f.Context, service.Namespace,
			export.DerivedServiceName(service))
	}
	return e.check(f.Context)
}

// nobody says why no cluster says anything of the service.
func (e *Explanation) nobody(f *facts.Facts, service types.NamespacedName) {
	if slices.ContainsFunc(f.Services, func(s corev1.Service) bool {
		return s.Namespace == service.Namespace &&
			s.Name == service.Name
	}) {
		e.problem(fmt.Sprintf("kubectl clusterset export %s --contexts %s%s", service, f.Context, e.system),
			"Neither %s nor any of its members exports %s. There is such a Service in %s, but without a ServiceExport it is not shared.", f.ID, service, f.ID)
		return
	}
	e.problem(fmt.Sprintf("kubectl clusterset export %s --contexts <context of a cluster that has the Service>%s",
		service, e.system),
		"Neither %s nor any of its members exports %s, and there is no such Service in %s. Export it in a cluster that has it.", f.ID, service, f.ID)
}

// ofSource says what is wrong with the word of one cluster.
func (e *Explanation) ofSource(f *facts.Facts, service types.NamespacedName, source *facts.Source) {
	switch {
	case source.Invalid != nil:
		e.problem(e.invalidHint(f, service, source), "%s does not export it: %s", source.Cluster,
			source.Invalid.Message)
	case source.State == liveness.Stale && source.Member.Warning(memberstate.EventMemberQuarantined) != nil:
		e.problem(e.check(both(f, source.Cluster)),
			"%s is not believed: %s. Its endpoints are kept, but get traffic only where no other cluster has a ready one.",
			source.Cluster, source.Member.Warning(memberstate.EventMemberQuarantined).Message)
	case source.State == liveness.Stale:
		had, since := e.silence(source)
		e.problem(e.check(both(f, source.Cluster)),
			"%s has %s from %s%s: %s's controller or API server is down, or %s cannot reach it. Its endpoints are kept, but get traffic only where no other cluster has a ready one.",
			f.ID, had, source.Cluster, since, source.Cluster, f.ID)
	case source.State == liveness.Gone:
		e.problem(e.check(both(f, source.Cluster)), "%s is gone: %s heard it last %s, too long ago for it to count.",
			source.Cluster, f.ID, e.heard(source))
	case source.Behind() && f.Takes(service.Namespace):
		e.problem(e.check(both(f, source.Cluster)),
			"%s publishes something else than what is here: the controller of %s has not read or written it (yet).",
			source.Cluster, f.ID)
	}
	if source.Drained {
		e.problem("kubectl clusterset undrain "+source.Cluster+" --contexts "+everywhere(f)+e.system,
			"%s is drained on purpose. To give it traffic again:", source.Cluster)
	}
	for _, problem := range source.Problems {
		switch problem.Reason {
		case export.ReasonForeignAddress:
			address, _, _ := strings.Cut(problem.Message, " ")
			e.problem(fmt.Sprintf("kubectl --context %s -n %s annotate secret %s %s=%s,<range of that address> --overwrite",
				f.Context, f.System, source.Member.Secret.Name, member.CIDRsAnnotation,
				source.Member.Secret.Annotations[member.CIDRsAnnotation]),
				"An endpoint of %s is refused: %s is not in %s that %s accepts from %s (annotation %s on Secret %s in %s). If that address is one of its pods', add their range; else correct the endpoint in %s.",
				source.Cluster, address, onlyRanges(source.Member), f.ID, source.Cluster, member.CIDRsAnnotation,
				source.Member.Secret.Name, f.ID, source.Cluster)
		default:
			e.problem("Correct the object in "+source.Cluster+".", "Something of %s is left out: %s.", source.Cluster,
				problem)
		}
	}
}

// both are the contexts of both ends of the way to a member.
func both(f *facts.Facts, cluster string) string {
	if cluster == f.ID {
		return f.Context
	}
	return f.Context + "," + f.ContextOf(cluster)
}

// everywhere are the contexts of all clusters of the set.
func everywhere(f *facts.Facts) string {
	contexts := []string{f.Context}
	for i := range f.Members {
		contexts = append(contexts, f.ContextOf(f.Members[i].ID))
	}
	return strings.Join(contexts, ",")
}

// silence says that nothing is heard of a member, which is stale, and since when.
func (e *Explanation) silence(source *facts.Source) (had, since string) {
	if source.Member.Heard().IsZero() {
		return "never had a heartbeat", ""
	}
	return "had no heartbeat", " for " + e.now.Sub(source.Member.Heard()).Round(time.Second).String()
}

// rangesOf are those that the addresses of a member have to be in.
func rangesOf(m *facts.Member) string {
	texts := make([]string, len(m.CIDRs))
	for i, prefix := range m.CIDRs {
		texts[i] = prefix.String()
	}
	return strings.Join(texts, ", ")
}

func onlyRanges(m *facts.Member) string {
	if len(m.CIDRs) > 1 {
		return rangesOf(m) + ", the only ranges"
	}
	return rangesOf(m) + ", the only range"
}

// agree says what to change where for the exports to agree.
func (e *Explanation) agree(f *facts.Facts, service types.NamespacedName, account merge.Account) string {
	var changes []string
	dissenting := map[string]bool{}
	for _, property := range account.Properties {
		for _, dissent := range property.Dissent {
			object := "Service"
			if strings.HasPrefix(property.Field, "exported") {
				object = "ServiceExport"
			}
			what := fmt.Sprintf("give %s %s in %s the %s %s", object, service, dissent.Cluster, property.Field,
				quoteEmpty(property.Value))
			if property.Field == "type" {
				with := "without"
				if property.Value == string(v1beta1.Headless) {
					with = "with"
				}
				what = fmt.Sprintf("delete and create Service %s anew in %s %s `clusterIP: None` (it cannot be changed in place)", service, dissent.Cluster, with)
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
	return strings.ToUpper(text[:1]) + text[1:] +
		fmt.Sprintf(", or stop exporting it there: `kubectl clusterset unexport %s --contexts %s%s`.", service,
			strings.Join(contexts, ","), e.system)
}

func (e *Explanation) invalidHint(f *facts.Facts, service types.NamespacedName, source *facts.Source) string {
	unexport := fmt.Sprintf("kubectl clusterset unexport %s --contexts %s%s", service, f.ContextOf(source.Cluster),
		e.system)
	switch source.Invalid.Reason {
	case string(v1beta1.ServiceExportReasonNoService):
		return "Create the Service, or: `" + unexport + "`."
	case string(v1beta1.ServiceExportReasonInvalidServiceType), export.InvalidName, input.InvalidDenied:
		return unexport
	}
	return ""
}

// summary says in one or two sentences what comes of it.
func (e *Explanation) summary(f *facts.Facts, service types.NamespacedName, sources []facts.Source,
	serviceImport *v1beta1.ServiceImport,
) {
	if serviceImport == nil {
		why := "neither it nor any of its members exports it"
		switch {
		case f.Namespaces[service.Namespace] == nil && len(sources) > 0:
			why = fmt.Sprintf("%s has no namespace %q", f.ID, service.Namespace)
		case slices.ContainsFunc(sources, func(s facts.Source) bool { return s.View != nil || s.Published != nil }):
			why = "its controller has not written it (yet)"
		case len(sources) > 0:
			why = "no export of it is valid"
		}
		e.Summary = fmt.Sprintf("%s is not imported in %s, because %s. Its name does not exist there.", service, f.ID,
			why)
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
	case len(serviceImport.Spec.IPs) == 1:
		e.Summary = fmt.Sprintf("%s is %s in %s: a virtual IP, another one in each cluster.", e.Name,
			serviceImport.Spec.IPs[0], f.ID)
	default:
		e.Summary = fmt.Sprintf("%s is %s in %s: virtual IPs, others in each cluster.", e.Name,
			strings.Join(serviceImport.Spec.IPs, " and "), f.ID)
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
	out := Answer{Answer: answer, Expected: append([]string{}, expected...), Wrong: !slices.Equal(got, expected)}
	if out.Wrong && e.part && len(got) > 0 &&
		!slices.ContainsFunc(got, func(address string) bool { return !slices.Contains(expected, address) }) {
		out.Wrong, out.Part = false, true
	}
	if e.Import != nil && answer.Rcode == "NXDOMAIN" && !e.mayLack() {
		out.Wrong, out.Part = true, false
	}
	if out.Wrong {
		e.problem(e.check(e.Context),
			"DNS answers %s for %s %s, and should answer %s.", answer.Text(), answer.Name, answer.Type,
			orNothing(expected))
	}
	e.Answers = append(e.Answers, out)
}

// mayLack tells whether there need not be such a name although the service is
// imported: that of a headless one exists while it has an address.
func (e *Explanation) mayLack() bool {
	return e.Import.Type == string(v1beta1.Headless) && len(e.expected) == 0
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
