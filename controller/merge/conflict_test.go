// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/export/exporttest"
)

func timeout(seconds int32) func(*export.View) {
	return func(view *export.View) {
		view.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		view.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{
			ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To(seconds)},
		}
	}
}

// pairs reads "a=1,b=2".
func pairs(text string) map[string]string {
	all := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		if key, value, found := strings.Cut(pair, "="); found {
			all[key] = value
		}
	}
	return all
}

// exportsOf reads exports of cluster-1, cluster-2, ..., each a day younger than the last, with ";" between them: their
// ports and other properties. Numbers of days and seconds are digits, "families=46" is IPv4 and IPv6, and "at=" gives the
// endpoint for port 80 an address.
func exportsOf(text string) (views []*export.View) {
	for i, each := range strings.FieldsFunc(text, func(r rune) bool { return r == ';' }) {
		view := newView(fmt.Sprint("cluster-", i+1), i+1, "", "")
		for field := range strings.FieldsSeq(each) {
			key, value, _ := strings.Cut(field, "=")
			switch key {
			case "cluster":
				view.Cluster = value
			case "age":
				view.Spec.Created = exporttest.Day(int(value[0] - '0'))
			case "at":
				view.Slices[0] = newSlice("web", "80/TCP", value)
			case "headless":
				headless(view)
			case "local":
				view.Spec.InternalTrafficPolicy = corev1.ServiceInternalTrafficPolicyLocal
			case "timeout":
				timeout(int32(value[0] - '0'))(view)
			case "distribution":
				view.Spec.TrafficDistribution = value
			case "labels":
				view.Spec.Labels = pairs(value)
			case "annotations":
				view.Spec.Annotations = pairs(value)
			case "families":
				view.Spec.IPFamilies = familiesOf(value)
			default:
				view.Spec.Ports = append(view.Spec.Ports, exporttest.Ports(field)...)
			}
		}
		views = append(views, view)
	}
	return views
}

const agree = "The exports of all clusters agree."

// TestConflict: the precedence of exports, and each property on which they disagree, with the used and the other values.
// The conditions of all exports and the decisions of all clusters are the same, in any order.
func TestConflict(t *testing.T) {
	for name, test := range map[string]struct{ exports, want string }{
		"equal exports":                         {"a:80/TCP b:81/TCP labels=a=b timeout=5; b:81/TCP a:80/TCP labels=a=b timeout=5", "cluster-1 cluster-2"},
		"type":                                  {"80/TCP; 80/TCP headless; 80/TCP; 80/TCP headless; 80/TCP", `cluster-1 cluster-2 cluster-3 cluster-4 cluster-5; TypeConflict "ClusterSetIP" (cluster-2 "Headless") (cluster-4 "Headless")`},
		"equally old exports go by cluster":     {"cluster=b 80/TCP headless; cluster=a age=1 80/TCP; cluster=c age=1 80/TCP headless", `a b c; TypeConflict "ClusterSetIP" (b "Headless") (c "Headless")`},
		"session affinity config":               {"80/TCP timeout=5; 80/TCP timeout=6; 80/TCP timeout=5", `cluster-1 cluster-2 cluster-3; SessionAffinityConfigConflict "clientIP.timeoutSeconds=5" (cluster-2 "clientIP.timeoutSeconds=6")`},
		"session affinity with a config":        {"80/TCP; 80/TCP timeout=6", `cluster-1 cluster-2; SessionAffinityConfigConflict "" (cluster-2 "clientIP.timeoutSeconds=6"); SessionAffinityConflict "None" (cluster-2 "ClientIP")`},
		"traffic distribution":                  {"80/TCP distribution=PreferClose; 80/TCP; 80/TCP distribution=PreferSameNode", `cluster-1 cluster-2 cluster-3; TrafficDistributionConflict "PreferClose" (cluster-2 "") (cluster-3 "PreferSameNode")`},
		"exported labels":                       {"80/TCP labels=b=c,a=b; 80/TCP labels=a=b", `cluster-1 cluster-2; LabelsConflict "a=b,b=c" (cluster-2 "a=b")`},
		"exported annotations":                  {"80/TCP; 80/TCP annotations=a=b", `cluster-1 cluster-2; AnnotationsConflict "" (cluster-2 "a=b")`},
		"port added":                            {"http:80/TCP; http:80/TCP metrics:9090/TCP", `cluster-1 cluster-2; PortConflict "http:80/TCP" (cluster-2 "http:80/TCP,metrics:9090/TCP")`},
		"ports without names":                   {"80/TCP; 443/TCP", `cluster-1 cluster-2; PortConflict "80/TCP" (cluster-2 "443/TCP")`},
		"one number, two names":                 {"http:80/TCP; web:80/TCP; 80/TCP", `cluster-1 cluster-2 cluster-3; PortConflict "http:80/TCP" (cluster-2 "web:80/TCP") (cluster-3 "80/TCP")`},
		"a family that all have":                {"80/TCP families=46; 80/TCP families=6", "cluster-1 cluster-2"},
		"no family that all have":               {"80/TCP families=4; 80/TCP families=6; 80/TCP families=64", `cluster-1 cluster-2 cluster-3; IPFamilyConflict "IPv4" (cluster-2 "IPv6")`},
		"backends out of reach for each family": {"80/TCP families=64; 80/TCP families=4; 80/TCP families=6", `cluster-1 cluster-2 cluster-3; IPFamilyConflict "IPv6,IPv4" (cluster-2 "IPv4") (cluster-3 "IPv6")`},
		"a family of some endpoints of a headless service alone": {"80/TCP headless families=46; 80/TCP headless families=4; 80/TCP headless families=4", `cluster-1 cluster-2 cluster-3; IPFamilyConflict "IPv4" (cluster-1 "IPv4,IPv6")`},
		"the oldest of a headless service has one family":        {"80/TCP headless; 80/TCP headless families=64", `cluster-1 cluster-2; IPFamilyConflict "IPv4" (cluster-2 "IPv6,IPv4")`},
	} {
		t.Run(name, func(t *testing.T) {
			contributions := contribute(exportsOf(test.exports)...)
			_, decision := Decide(newObserved("east"), contributions)
			diff(t, "decision", decisionText(decision), test.want)
			want := metav1.Condition{Type: "Conflict", Status: metav1.ConditionFalse, Reason: "NoConflicts", Message: agree}
			if decision.Conflict != "" {
				var reasons []string
				for _, found := range regexp.MustCompile(`; (\w+)`).FindAllStringSubmatch(test.want, -1) {
					reasons = append(reasons, found[1])
				}
				slices.Sort(reasons)
				want.Status, want.Reason, want.Message = metav1.ConditionTrue, strings.Join(reasons, ","), decision.Conflict
			}
			slices.Reverse(contributions)
			_, again := Decide(newObserved("east"), contributions)
			diff(t, "decision in another order", decisionText(again), test.want)
			for _, each := range contributions {
				result := Merge(newObserved(each.View.Cluster), contributions)
				diff(t, "condition in "+each.View.Cluster, conditionOf(result.ExportConditions, "Conflict"), want)
			}
		})
	}
}

func decisionText(decision Decision) string {
	text, used := precedenceText(decision), *decision.spec
	used.IPFamilies = decision.families
	for _, property := range decision.Properties {
		if len(property.Dissent) == 0 {
			continue
		}
		text += fmt.Sprintf("; %s %q", property.Reason, property.Text(&used))
		for _, dissent := range property.Dissent {
			text += fmt.Sprintf(" (%s %q)", dissent.Cluster, property.Text(dissent.Spec))
		}
	}
	return text
}

func precedenceText(decision Decision) string {
	var clusters []string
	for _, each := range decision.Precedence {
		clusters = append(clusters, each.View.Cluster)
	}
	return strings.Join(clusters, " ")
}

// TestConflictMessage: each property by its name in the API, with the value of the oldest export, and up to three others.
func TestConflictMessage(t *testing.T) {
	for exports, want := range map[string]string{
		"80/TCP; 80/TCP local; 80/TCP local; 80/TCP local; 80/TCP local": `Conflicting internalTrafficPolicy. Using "Cluster" from service export in "cluster-1". 4/5 clusters disagree. "cluster-2" has "Local". "cluster-3" has "Local". "cluster-4" has "Local". And 1 more.`,
		"http:80/TCP labels=a=1 annotations=b=1 distribution=PreferClose; http:81/TCP headless timeout=7 local families=6 distribution=PreferSameZone": `Conflicting exportedAnnotations. Using "b=1" from service export in "cluster-1". 1/2 clusters disagree. "cluster-2" has "". ` +
			`Conflicting ipFamilies. Using "IPv4" from service export in "cluster-1". 1/2 clusters disagree. "cluster-2" has "IPv6". ` +
			`Conflicting internalTrafficPolicy. Using "Cluster" from service export in "cluster-1". 1/2 clusters disagree. "cluster-2" has "Local". ` +
			`Conflicting exportedLabels. Using "a=1" from service export in "cluster-1". 1/2 clusters disagree. "cluster-2" has "". ` +
			`Conflicting ports. Using "http:80/TCP" from service export in "cluster-1". 1/2 clusters disagree. "cluster-2" has "http:81/TCP". ` +
			`Conflicting sessionAffinityConfig. Using "" from service export in "cluster-1". 1/2 clusters disagree. "cluster-2" has "clientIP.timeoutSeconds=7". ` +
			`Conflicting sessionAffinity. Using "None" from service export in "cluster-1". 1/2 clusters disagree. "cluster-2" has "ClientIP". ` +
			`Conflicting trafficDistribution. Using "PreferClose" from service export in "cluster-1". 1/2 clusters disagree. "cluster-2" has "PreferSameZone". ` +
			`Conflicting type. Using "ClusterSetIP" from service export in "cluster-1". 1/2 clusters disagree. "cluster-2" has "Headless".`,
	} {
		_, decision := Decide(newObserved("east"), contribute(exportsOf(exports)...))
		diff(t, exports, decision.Conflict, want)
	}
}

// TestConflictBounds: the API refuses longer reasons and messages.
func TestConflictBounds(t *testing.T) {
	long := strings.Repeat("é\x00", 600)
	text := ""
	for i := range 4 {
		text += fmt.Sprintf("; cluster=%s%d p%[2]d:80/TCP(%[3]s) labels=a=%[2]d%[3]s annotations=a=%[2]d%[3]s distribution=%[2]d%[3]s",
			strings.Repeat("x", 62), i, long)
		if i > 0 {
			text += " headless timeout=7 local families=6"
		}
	}
	views := exportsOf(text)
	conflict := conditionOf(Merge(newObserved(views[0].Cluster), contribute(views...)).ExportConditions, "Conflict")
	diff(t, "reasons", strings.Count(conflict.Reason, ","), 8)
	if len(conflict.Reason) > 1024 || len(conflict.Message) > 32768 {
		t.Errorf("reason of %d and message of %d bytes", len(conflict.Reason), len(conflict.Message))
	}
}

// TestRanks: a cluster states the creation times of its exports itself. A cluster that the administrator ranks behind
// others wins no conflict with them, whatever its creation times.
func TestRanks(t *testing.T) {
	views := exportsOf("cluster=a age=3 80/TCP; cluster=b age=2 80/TCP headless; cluster=c age=1 80/TCP; cluster=d age=1 80/TCP headless")
	const oldest, first = `Conflicting type. Using "ClusterSetIP" from service export in `, ` from service export in `
	for name, test := range map[string]struct {
		ranks         [4]int
		want, message string
	}{
		"all alike":                       {[4]int{0, 0, 0, 0}, "c d b a", oldest + `"c"`},
		"the oldest is first by rank too": {[4]int{0, 0, -1, 0}, "c d b a", oldest + `"c"`},
		"the oldest is last":              {[4]int{0, 0, 1, 0}, "d b a c", `"Headless"` + first + `"d"`},
		"the youngest is first":           {[4]int{-5, 0, 0, 0}, "a c d b", `"ClusterSetIP"` + first + `"a"`},
	} {
		contributions := contribute(views...)
		for i, rank := range test.ranks {
			contributions[i].Rank = rank
		}
		for range 2 {
			result, decision := Decide(newObserved("a"), contributions)
			diff(t, name+": precedence", precedenceText(decision), test.want)
			if message := conditionOf(result.ExportConditions, "Conflict").Message; !strings.Contains(message, test.message+". 2/4 clusters disagree. ") {
				t.Errorf("%s: message %q, want %q", name, message, test.message)
			}
			if kind := string(result.ServiceImport.Spec.Type); !strings.Contains(test.message, kind) {
				t.Errorf("%s: the import is %s", name, kind)
			}
			slices.Reverse(contributions)
		}
	}
}
