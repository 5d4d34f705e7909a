// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"errors"
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

// problems adds what may have to be fixed, and how.
func (e *Explanation) problems(f *facts.Facts, service types.NamespacedName, sources []facts.Source,
	serviceImport *v1beta1.ServiceImport, account merge.Account,
) {
	exporting := slices.ContainsFunc(sources, func(s facts.Source) bool { return s.View != nil || s.Published != nil })
	if own := f.Export(service); own != nil {
		if reach := meta.FindStatusCondition(own.Status.Conditions, merge.ConditionReach); reach != nil &&
			reach.Status != metav1.ConditionTrue {
			e.problem("", "The export of %s does not reach all members. %s", f.ID, reach.Message)
		}
	}
	if other := e.resolver.other; other != nil {
		e.problem(fmt.Sprintf("Select the zone of %s with --zone, or correct the option clusterset in the Corefile.", f.Set),
			"The Corefile of %s serves %s for %s, not for %s.", f.ID, strings.TrimSuffix(e.resolver.config.Zones[0], "."), *other,
			f.Set)
	}
	if exporting && f.Namespaces[service.Namespace] == nil {
		e.problem(fmt.Sprintf("kubectl --context %s create namespace %s", f.Context, service.Namespace),
			"Namespace %q does not exist in %s. Services are imported only into existing namespaces.",
			service.Namespace, f.ID)
	}
	switch elsewhere := f.Elsewhere(service.Namespace); {
	case elsewhere:
		of := export.Set(f.Namespaces[service.Namespace].Labels[export.LabelSet])
		e.problem("Name the namespace of the controller of that set with --system-namespace, or change the label "+
			export.LabelSet+".", "Namespace %q in %s belongs to %s. The controller in namespace %s takes care of %s.",
			service.Namespace, f.ID, of, f.System, f.Set)
	case len(sources) == 0:
		e.notExported(f, service)
	}
	for i := range sources {
		e.ofSource(f, service, &sources[i])
	}
	if account.Conflict != "" {
		e.problem(e.agree(f, service, account), "%s", account.Conflict)
	}
	for i := range f.Members {
		m := &f.Members[i]
		if m.Invalid != "" {
			e.problem(Correct(f, m), "The controller of %s rejects Secret %s: %v. The last valid value stays in effect.", f.ID,
				m.Secret.Name, m.Refused)
		}
		if m.Unread != nil && (m.Invalid == "" || !errors.Is(m.Unread, m.Refused)) {
			e.problem(e.check(f.Context),
				"The slices of %s could not be read, so only its imported endpoints are known: %v", m.ID,
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
			"The controller does not manage ServiceImport %s in %s, so nothing is imported.",
			service, f.ID)
	case ready != nil && ready.Status != metav1.ConditionTrue:
		e.problem(e.importHint(f, service, ready.Reason), "The import is not ready in %s: %s", f.ID, ready.Message)
	}
	if export.IsManaged(serviceImport) && len(account.Precedence) > 0 {
		e.unserved(f, service, account.Precedence)
	}
}

// unserved adds a problem if no endpoint of an imported service is ready, unless
// the state of an endpoint has the reason already.
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

// check is the command that diagnoses clusters.
func (e *Explanation) check(contexts string) string {
	return "kubectl clusterset check --contexts " + contexts + e.zone + e.system
}

func (e *Explanation) importHint(f *facts.Facts, service types.NamespacedName, reason string) string {
	if reason == merge.ReasonForeignService {
		return fmt.Sprintf("kubectl --context %s -n %s delete service %s", f.Context, service.Namespace,
			export.DerivedServiceName(service))
	}
	return e.check(f.Context)
}

// notExported adds the reason why no cluster exports the service.
func (e *Explanation) notExported(f *facts.Facts, service types.NamespacedName) {
	if slices.ContainsFunc(f.Services, func(s corev1.Service) bool {
		return s.Namespace == service.Namespace &&
			s.Name == service.Name
	}) {
		e.problem(fmt.Sprintf("kubectl clusterset export %s --contexts %s%s", service, f.Context, e.system),
			"Neither %s nor any of its members exports %s. The Service exists in %s, but has no ServiceExport.",
			f.ID, service, f.ID)
		return
	}
	e.problem(fmt.Sprintf("kubectl clusterset export %s --contexts <context of a cluster that has the Service>%s",
		service, e.system),
		"Neither %s nor any of its members exports %s. The Service does not exist in %s; export it in a cluster that has it.",
		f.ID, service, f.ID)
}

// ofSource adds the problems of the export of one cluster.
func (e *Explanation) ofSource(f *facts.Facts, service types.NamespacedName, source *facts.Source) {
	switch {
	case source.Invalid != nil:
		e.problem(e.invalidHint(f, service, source), "%s does not export it: %s", source.Cluster,
			source.Invalid.Message)
	case source.Refused != "":
		e.problem(e.acceptHint(f, service, source), "%s does not accept %s of %s: %s.", f.ID, service, source.Cluster,
			source.Refused)
	case source.Chosen != "":
		e.problem(fmt.Sprintf("kubectl --context %s -n %s annotate serviceexport %s %s --overwrite",
			f.ContextOf(source.Cluster), service.Namespace, service.Name,
			Assign(export.AnnotationClusters, source.Chosen+"; "+f.ID)),
			"The export of %s is not for %s: it is for %q (annotation %s).", source.Cluster, f.ID, source.Chosen,
			export.AnnotationClusters)
	case source.State == liveness.Stale && source.Member.Warning(memberstate.EventMemberQuarantined) != nil:
		e.problem(e.check(both(f, source.Cluster)),
			"%s is quarantined: %s. "+onlyIf,
			source.Cluster, source.Member.Warning(memberstate.EventMemberQuarantined).Message)
	case source.PodsUnreachable():
		e.problem("kubectl clusterset test connectivity --contexts "+both(f, source.Cluster)+e.system,
			"Connections from %s to the pods of %s fail, though its heartbeats may arrive. "+onlyIf, f.ID, source.Cluster)
	case source.State == liveness.Stale && e.unauthorized(source.Member):
		e.problem(fmt.Sprintf("kubectl clusterset join %s %s%s", f.Context, f.ContextOf(source.Cluster), e.system),
			"%s, because the API server of %s no longer accepts the credential of %s: it expired, was revoked, or the "+
				"signing key was replaced. "+onlyIf, e.silence(source), source.Cluster, f.ID)
	case source.State == liveness.Stale:
		e.problem(e.check(both(f, source.Cluster)),
			"%s: the controller or the API server of %s is down or unreachable. "+onlyIf, e.silence(source), source.Cluster)
	case source.State == liveness.Gone:
		e.problem(e.check(both(f, source.Cluster)), "%s is gone, and its exports are ignored: %s.",
			source.Cluster, e.silence(source))
	case source.Behind() && f.Takes(service.Namespace):
		e.problem(e.check(both(f, source.Cluster)),
			"What %s publishes differs from what is imported: the controller of %s has not written the change yet.",
			source.Cluster, f.ID)
	}
	if source.Drained {
		e.problem("kubectl clusterset undrain "+source.Cluster+" --contexts "+everywhere(f)+e.system,
			"%s is drained. To return traffic to it:", source.Cluster)
	}
	for _, problem := range source.Problems {
		switch problem.Reason {
		case export.ReasonForeignAddress:
			address, _, _ := strings.Cut(problem.Message, " ")
			e.problem(annotateSecret(f, source.Member, member.CIDRsAnnotation,
				source.Member.Secret.Annotations[member.CIDRsAnnotation]+",<range of that address>"),
				"Endpoint %s of %s is refused: %s accepts only addresses in %s (annotation %s of Secret %s). If it is the "+
					"address of a pod, add its pod range; otherwise correct the endpoint in %s.",
				address, source.Cluster, f.ID, rangesOf(source.Member), member.CIDRsAnnotation,
				source.Member.Secret.Name, source.Cluster)
		default:
			e.problem("Correct the object in "+source.Cluster+".", "Part of the export of %s is not imported: %s.",
				source.Cluster, problem)
		}
	}
}

// both are the contexts of this cluster and of a member.
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

// onlyIf is the effect of a demotion.
const onlyIf = "Its endpoints are used only if no other cluster has a ready endpoint."

// silence says for how long no heartbeat of a member has arrived.
func (e *Explanation) silence(source *facts.Source) string {
	if source.Member.Heard().IsZero() {
		return e.Cluster + " has never received a heartbeat from " + source.Cluster
	}
	return fmt.Sprintf("%s has received no heartbeat from %s for %s", e.Cluster, source.Cluster,
		e.now.Sub(source.Member.Heard()).Round(time.Second))
}

// unauthorized reports whether a member is silent because it rejects the credential in use.
func (e *Explanation) unauthorized(m *facts.Member) bool {
	if !m.Expires.IsZero() && !e.now.Before(m.Expires) {
		return true
	}
	warning := m.Warning(memberstate.EventMemberUnreachable)
	return warning != nil && strings.Contains(warning.Message, "nauthorized")
}

// rangesOf are the ranges to which the addresses of a member are confined.
func rangesOf(m *facts.Member) string {
	texts := make([]string, len(m.CIDRs))
	for i, prefix := range m.CIDRs {
		texts[i] = prefix.String()
	}
	return strings.Join(texts, ", ")
}

// agree is the instruction that resolves a conflict.
func (e *Explanation) agree(f *facts.Facts, service types.NamespacedName, account merge.Account) string {
	var changes []string
	dissenting := map[string]bool{}
	for _, property := range account.Properties {
		for _, dissent := range property.Dissent {
			object := "Service"
			if strings.HasPrefix(property.Field, "exported") {
				object = "ServiceExport"
			}
			what := fmt.Sprintf("set %s of %s %s in %s to %s", property.Field, object, service, dissent.Cluster,
				quoteEmpty(property.Value))
			if property.Field == "type" {
				with := "without"
				if property.Value == string(v1beta1.Headless) {
					with = "with"
				}
				what = fmt.Sprintf("delete and recreate Service %s in %s %s `clusterIP: None`, which is immutable", service,
					dissent.Cluster, with)
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
		return "Make the Services and ServiceExports the same in all clusters."
	}
	text := strings.Join(changes, "; ")
	return strings.ToUpper(text[:1]) + text[1:] +
		fmt.Sprintf(", or withdraw the export there: `kubectl clusterset unexport %s --contexts %s%s`.", service,
			strings.Join(contexts, ","), e.system)
}

func (e *Explanation) invalidHint(f *facts.Facts, service types.NamespacedName, source *facts.Source) string {
	unexport := fmt.Sprintf("kubectl clusterset unexport %s --contexts %s%s", service, f.ContextOf(source.Cluster),
		e.system)
	switch source.Invalid.Reason {
	case string(v1beta1.ServiceExportReasonNoService):
		return "Create the Service, or withdraw the export: `" + unexport + "`."
	case string(v1beta1.ServiceExportReasonInvalidServiceType), export.InvalidName, input.InvalidDenied:
		return unexport
	case export.InvalidClusters:
		return fmt.Sprintf("kubectl --context %s -n %s annotate serviceexport %s %s --overwrite",
			f.ContextOf(source.Cluster), service.Namespace, service.Name,
			Assign(export.AnnotationClusters, "<ids and label selectors of properties>"))
	}
	return ""
}

// summary sets the summary.
func (e *Explanation) summary(f *facts.Facts, service types.NamespacedName, sources []facts.Source,
	serviceImport *v1beta1.ServiceImport,
) {
	if serviceImport == nil {
		why := "neither it nor any of its members exports the service"
		switch {
		case f.Namespaces[service.Namespace] == nil && len(sources) > 0:
			why = fmt.Sprintf("namespace %q does not exist", service.Namespace)
		case slices.ContainsFunc(sources, func(s facts.Source) bool { return s.View != nil || s.Published != nil }):
			why = "the controller has not written the import yet"
		case slices.ContainsFunc(sources, func(s facts.Source) bool { return s.Chosen != "" || s.Refused != "" }):
			why = "no export is for this cluster and accepted"
		case len(sources) > 0:
			why = "no export is valid"
		}
		e.Summary = fmt.Sprintf("%s is not imported in %s, because %s. Its name does not resolve there.", service, f.ID,
			why)
		return
	}
	counts := map[string]int{}
	for _, endpoint := range e.Endpoints {
		counts[endpoint.State]++
	}
	var others []string
	for _, state := range []string{Waiting, Demoted, NotReady, Unused, Refused, Outside, NotHere} {
		if counts[state] > 0 {
			others = append(others, fmt.Sprintf("%d %s", counts[state], state))
		}
	}
	traffic := fmt.Sprintf("Traffic goes to %d of %d endpoints", counts[Used], len(e.Endpoints))
	switch {
	case len(e.Endpoints) == 0:
		traffic = "There are no endpoints"
	case len(others) > 0:
		traffic += " (" + strings.Join(others, ", ") + ")"
	}
	switch {
	case serviceImport.Spec.Type == v1beta1.Headless:
		e.Summary = fmt.Sprintf("%s is headless and resolves to the addresses of its endpoints.", e.Name)
	case len(serviceImport.Spec.IPs) == 0:
		e.Summary = fmt.Sprintf("%s has no IP in %s.", e.Name, f.ID)
	case len(serviceImport.Spec.IPs) == 1:
		e.Summary = fmt.Sprintf("%s resolves to %s, its virtual IP in %s.", e.Name,
			serviceImport.Spec.IPs[0], f.ID)
	default:
		e.Summary = fmt.Sprintf("%s resolves to %s, its virtual IPs in %s.", e.Name,
			strings.Join(serviceImport.Spec.IPs, " and "), f.ID)
	}
	e.Summary += " " + traffic + "."
}

// Types are the record types to query.
func (e *Explanation) Types() []string {
	if addresses, _ := e.resolver.lookup("AAAA"); len(addresses) > 0 {
		return []string{"A", "AAAA"}
	}
	return []string{"A"}
}

// Answered adds the answer of a server, and a problem if it is wrong.
func (e *Explanation) Answered(server string, answer dns.Answer) {
	e.Server = server
	expected, exists := e.resolver.lookup(answer.Type)
	slices.SortFunc(answer.Records, compareAddresses)
	out := Answer{Answer: answer, Expected: expected, Wrong: !slices.Equal(answer.Records, expected)}
	if out.Wrong && e.resolver.part && len(answer.Records) > 0 &&
		!slices.ContainsFunc(answer.Records, func(got string) bool { return !slices.Contains(expected, got) }) {
		out.Wrong, out.Part = false, true
	}
	out.Wrong = out.Wrong || exists && answer.Rcode == "NXDOMAIN"
	if out.Wrong {
		e.problem(e.check(e.Context),
			"DNS returns %s for %s %s instead of %s.", answer.Text(), answer.Name, answer.Type,
			orNothing(expected))
	}
	e.Answers = append(e.Answers, out)
	if near := e.resolver.near(answer.Type, e.Cluster); near != nil && !out.Wrong && !slices.Equal(near, expected) &&
		e.Preference != nil {
		e.Preference.Note = ""
		if slices.ContainsFunc(answer.Records, func(got string) bool { return !slices.Contains(near, got) }) {
			e.Preference.Note = fmt.Sprintf("DNS returns all endpoints: its Corefile has no `cluster %s`.", e.Cluster)
			e.problem(fmt.Sprintf("Add `cluster %s` to the multicluster block of the Corefile of that server.", e.Cluster), "%s",
				e.Preference.Note)
		}
	}
}

// Unanswered adds the problem that DNS could not be queried.
func (e *Explanation) Unanswered(err error) {
	e.problem("Set the address of the cluster's DNS with --dns.", "DNS was not queried: %v.", err)
}

// ExpectedText is Expected as text.
func (a Answer) ExpectedText() string { return orNothing(a.Expected) }

func orNothing(records []string) string {
	if len(records) == 0 {
		return "no records"
	}
	return strings.Join(records, " ")
}
