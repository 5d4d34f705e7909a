// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// A Property is a property of the import on which exports can disagree. The first export in precedence sets its value.
// Texts of values have the form of condition messages.
type Property struct {
	// Field is its name in the API.
	Field string
	// Reason is the reason of the condition Conflict if exports disagree.
	Reason v1beta1.ServiceExportConditionReason
	// Text returns the value of a spec, empty if it has none.
	Text func(*export.Spec) string
	// Dissent has the exports with another value, in their precedence.
	Dissent []*export.View
}

// properties are in the order of their reasons, as the condition Conflict lists them.
var properties = []Property{
	of("exportedAnnotations", v1beta1.ServiceExportReasonAnnotationsConflict,
		func(s *export.Spec) string { return mapText(s.Annotations) }),
	of("ipFamilies", v1beta1.ServiceExportReasonIPFamilyConflict,
		func(s *export.Spec) string { return familiesText(s.IPFamilies) }),
	of("internalTrafficPolicy", v1beta1.ServiceExportReasonInternalTrafficPolicyConflict,
		func(s *export.Spec) string { return string(s.InternalTrafficPolicy) }),
	of("exportedLabels", v1beta1.ServiceExportReasonLabelsConflict,
		func(s *export.Spec) string { return mapText(s.Labels) }),
	of("ports", v1beta1.ServiceExportReasonPortConflict,
		func(s *export.Spec) string { return portsText(s.Ports) }),
	of("sessionAffinityConfig", v1beta1.ServiceExportReasonSessionAffinityConfigConflict,
		func(s *export.Spec) string { return affinityText(s.SessionAffinityConfig) }),
	of("sessionAffinity", v1beta1.ServiceExportReasonSessionAffinityConflict,
		func(s *export.Spec) string { return string(s.SessionAffinity) }),
	of("trafficDistribution", v1beta1.ServiceExportReasonTrafficDistributionConflict,
		func(s *export.Spec) string { return s.TrafficDistribution }),
	of("type", v1beta1.ServiceExportReasonTypeConflict,
		func(s *export.Spec) string { return string(s.Type) }),
}

func of(field string, reason v1beta1.ServiceExportConditionReason, text func(*export.Spec) string) Property {
	return Property{Field: field, Reason: reason, Text: text}
}

// maxDissent bounds the clusters that a message names for a property.
const maxDissent = 3

// compare returns all properties of the decision, and the reason and the message of the condition Conflict, which are empty
// without conflicts. They depend only on the specs of the views and the precedence.
func compare(views []*export.View, agreed Decision) (all []Property, reason, message string) {
	var reasons, messages []string
	all = slices.Clone(properties)
	first := *agreed.spec
	first.IPFamilies = agreed.families
	for i := range all {
		p, used := &all[i], all[i].Text(&first)
		for _, view := range views {
			var differs bool
			switch p.Reason {
			case v1beta1.ServiceExportReasonIPFamilyConflict:
				differs = outOfReach(agreed.spec.Type, view.Spec.IPFamilies, agreed.families)
			case v1beta1.ServiceExportReasonAnnotationsConflict: // different annotations may have the same text
				differs = !maps.Equal(view.Spec.Annotations, agreed.spec.Annotations)
			default:
				differs = p.Text(view.Spec) != used
			}
			if differs {
				p.Dissent = append(p.Dissent, view)
			}
		}
		if len(p.Dissent) == 0 {
			continue
		}
		text := fmt.Sprintf("Conflicting %s. Using %q from service export in %q. %d/%d clusters disagree.",
			p.Field, shorten(used), views[0].Cluster, len(p.Dissent), len(views))
		for _, view := range p.Dissent[:min(len(p.Dissent), maxDissent)] {
			text += fmt.Sprintf(" %q has %q.", view.Cluster, shorten(p.Text(view.Spec)))
		}
		if more := len(p.Dissent) - maxDissent; more > 0 {
			text += fmt.Sprintf(" And %d more.", more)
		}
		reasons, messages = append(reasons, string(p.Reason)), append(messages, text)
	}
	if left := len(agreed.keys) - len(agreed.ports); left > 0 {
		messages = append(messages, fmt.Sprintf("Ports not served, because an import has at most %d: %d.", maxPorts, left))
	}
	return all, strings.Join(reasons, ","), strings.Join(messages, " ")
}

// outOfReach reports whether some clients of an import with the families in used cannot reach backends with the families
// in has, which is a conflict (KEP-1645, "IP Families"). A VIP reaches backends that have every family used. A headless
// name has one record for each address of a backend, so backends must have the same families.
func outOfReach(kind v1beta1.ServiceImportType, has, used []corev1.IPFamily) bool {
	backends, clients := sets.New(has...), sets.New(used...)
	return !backends.IsSuperset(clients) || kind == v1beta1.Headless && !clients.IsSuperset(backends)
}

// texts returns the text of each value.
func texts[T any](values []T, text func(T) string) []string {
	all := make([]string, 0, len(values))
	for _, value := range values {
		all = append(all, text(value))
	}
	return all
}

func portsText(ports []export.Port) string {
	all := texts(ports, portText)
	slices.Sort(all)
	return strings.Join(all, ",")
}

func familiesText(families []corev1.IPFamily) string {
	return strings.Join(texts(families, func(family corev1.IPFamily) string { return string(family) }), ",")
}

func affinityText(config *corev1.SessionAffinityConfig) string {
	if config == nil {
		return ""
	}
	return fmt.Sprintf("clientIP.timeoutSeconds=%d", *config.ClientIP.TimeoutSeconds)
}

func mapText(m map[string]string) string {
	return strings.Join(texts(slices.Sorted(maps.Keys(m)), func(key string) string { return key + "=" + m[key] }), ",")
}

// maxValue bounds a value in a message, so that the message stays below the 32 KiB that the API allows.
const maxValue = 512

func shorten(text string) string { return export.Cut(text, maxValue) }
