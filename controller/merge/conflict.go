// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// A conflict is a property that exports disagree on.
type conflict struct {
	reason  v1beta1.ServiceExportConditionReason
	message string
}

// A property is a part of an export whose value is that of the first export in precedence.
type property struct {
	field  string
	reason v1beta1.ServiceExportConditionReason
	equal  func(a, b *export.Spec) bool
	text   func(*export.Spec) string
	// details are the differences of views to the first one, each sentence after a space; nil for none.
	details func(views []*export.View) string
}

var properties = []property{
	of("type", v1beta1.ServiceExportReasonTypeConflict,
		func(s *export.Spec) v1beta1.ServiceImportType { return s.Type }),
	of("sessionAffinity", v1beta1.ServiceExportReasonSessionAffinityConflict,
		func(s *export.Spec) corev1.ServiceAffinity { return s.SessionAffinity }),
	of("sessionAffinityConfig", v1beta1.ServiceExportReasonSessionAffinityConfigConflict,
		func(s *export.Spec) string { return affinityText(s.SessionAffinityConfig) }),
	of("internalTrafficPolicy", v1beta1.ServiceExportReasonInternalTrafficPolicyConflict,
		func(s *export.Spec) corev1.ServiceInternalTrafficPolicy { return s.InternalTrafficPolicy }),
	of("trafficDistribution", v1beta1.ServiceExportReasonTrafficDistributionConflict,
		func(s *export.Spec) string { return s.TrafficDistribution }),
	ofMap("exportedLabels", v1beta1.ServiceExportReasonLabelsConflict,
		func(s *export.Spec) map[string]string { return s.Labels }),
	ofMap("exportedAnnotations", v1beta1.ServiceExportReasonAnnotationsConflict,
		func(s *export.Spec) map[string]string { return s.Annotations }),
}

func of[T ~string](field string, reason v1beta1.ServiceExportConditionReason, value func(*export.Spec) T) property {
	return property{
		field: field, reason: reason,
		equal: func(a, b *export.Spec) bool { return value(a) == value(b) },
		text:  func(s *export.Spec) string { return string(value(s)) },
	}
}

func ofMap(field string, reason v1beta1.ServiceExportConditionReason,
	value func(*export.Spec) map[string]string,
) property {
	return property{
		field: field, reason: reason,
		equal:   func(a, b *export.Spec) bool { return maps.Equal(value(a), value(b)) },
		text:    func(s *export.Spec) string { return mapText(value(s)) },
		details: func(views []*export.View) string { return mapDetails(views, value) },
	}
}

// mapDetails names the keys of views that differ from those of the first one.
func mapDetails(views []*export.View, value func(*export.Spec) map[string]string) string {
	var found details
	first := value(views[0].Spec)
	for _, view := range views[1:] {
		other := value(view.Spec)
		for _, key := range slices.Sorted(maps.Keys(other)) {
			used, set := first[key]
			switch {
			case !set:
				found.say(func() string {
					return fmt.Sprintf("%q of %q has no effect: set it in %q, too, or remove it.", shorten(key), view.Cluster,
						views[0].Cluster)
				})
			case other[key] != used:
				found.say(func() string { return fmt.Sprintf("%q of %q differs.", shorten(key), view.Cluster) })
			}
		}
		for _, key := range slices.Sorted(maps.Keys(first)) {
			if _, set := other[key]; !set {
				found.say(func() string { return fmt.Sprintf("%q is missing in %q.", shorten(key), view.Cluster) })
			}
		}
	}
	return found.all()
}

// conflicts returns the conflicts of views in their precedence, sorted by reason. They depend only on the specs and the
// precedence. ranked means that the first view is not the oldest.
func conflicts(views []*export.View, ranked bool, merged union, families []corev1.IPFamily) []conflict {
	first, why := views[0], "oldest"
	if ranked {
		why = "first-ranked"
	}
	var found []conflict
	add := func(field string, reason v1beta1.ServiceExportConditionReason, used string,
		disagrees func(*export.Spec) bool, details func() string,
	) {
		count := 0
		for _, view := range views {
			if disagrees(view.Spec) {
				count++
			}
		}
		if count == 0 {
			return
		}
		message := fmt.Sprintf("Conflicting %s. Using %q from %s service export in %q. %d/%d clusters disagree.",
			field, shorten(used), why, first.Cluster, count, len(views))
		found = append(found, conflict{reason, message + details()})
	}
	none := func() string { return "" }

	for _, p := range properties {
		details := none
		if p.details != nil {
			details = func() string { return p.details(views) }
		}
		add(p.field, p.reason, p.text(first.Spec), func(s *export.Spec) bool { return !p.equal(s, first.Spec) }, details)
	}
	ports := setOf(first.Spec.Ports)
	add("ports", v1beta1.ServiceExportReasonPortConflict, portsText(first.Spec.Ports),
		func(s *export.Spec) bool { return !ports.equal(s.Ports) },
		func() string { return portDetails(views, ports, merged) })
	add("ipFamilies", v1beta1.ServiceExportReasonIPFamilyConflict, familiesText(families),
		func(s *export.Spec) bool { return outOfReach(first.Spec.Type, s.IPFamilies, families) }, none)

	slices.SortFunc(found, func(a, b conflict) int { return cmp.Compare(a.reason, b.reason) })
	return found
}

// outOfReach reports whether some clients of an import with the families used cannot reach backends with the families
// has. This is a conflict (KEP-1645, "IP Families"). A VIP reaches backends that have every family used. A headless
// name has one record for each address of a backend, so backends must have the same families.
func outOfReach(kind v1beta1.ServiceImportType, has, used []corev1.IPFamily) bool {
	lacks := func(a, b []corev1.IPFamily) bool {
		return slices.ContainsFunc(b, func(family corev1.IPFamily) bool { return !slices.Contains(a, family) })
	}
	return lacks(has, used) || (kind == v1beta1.Headless && lacks(used, has))
}

func portsText(ports []export.Port) string {
	texts := make([]string, 0, len(ports))
	for _, port := range ports {
		texts = append(texts, portText(port))
	}
	slices.Sort(texts)
	return strings.Join(texts, ",")
}

func familiesText(families []corev1.IPFamily) string {
	texts := make([]string, 0, len(families))
	for _, family := range families {
		texts = append(texts, string(family))
	}
	return strings.Join(texts, ",")
}

func affinityText(config *corev1.SessionAffinityConfig) string {
	if config == nil || config.ClientIP == nil || config.ClientIP.TimeoutSeconds == nil {
		return ""
	}
	return fmt.Sprintf("clientIP.timeoutSeconds=%d", *config.ClientIP.TimeoutSeconds)
}

func mapText(m map[string]string) string {
	texts := make([]string, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		texts = append(texts, key+"="+m[key])
	}
	return strings.Join(texts, ",")
}

// maxValue bounds a value in a message, so that the message stays below the 32 KiB that the API allows.
const maxValue = 512

func shorten(text string) string {
	if len(text) <= maxValue {
		return text
	}
	return strings.ToValidUTF8(text[:maxValue-3], "") + "..."
}
