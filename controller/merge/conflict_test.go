// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

func timeout(seconds int32) func(*export.View) {
	return func(view *export.View) {
		view.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		view.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{
			ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To(seconds)},
		}
	}
}

func local(view *export.View) {
	view.Spec.InternalTrafficPolicy = corev1.ServiceInternalTrafficPolicyLocal
}

// exportsOf reads exports of cluster-1, cluster-2, ..., each a day younger than the last, with ";" between them: their
// ports, and what else they have.
func exportsOf(t *testing.T, text string) (views []*export.View) {
	t.Helper()
	for i, each := range strings.Split(text, ";") {
		if text == "" {
			break
		}
		cluster, age, endpoints := fmt.Sprint("cluster-", i+1), i+1, ""
		var ports []string
		var change []func(*export.View)
		for field := range strings.FieldsSeq(each) {
			key, value, _ := strings.Cut(field, "=")
			list := strings.Split(value, ",")
			switch key {
			case "cluster":
				cluster = value
			case "age":
				age = int(value[0] - '0')
			case "at":
				endpoints = value
			case "headless":
				change = append(change, headless)
			case "local":
				change = append(change, local)
			case "affinity":
				change = append(change, func(v *export.View) { v.Spec.SessionAffinity = corev1.ServiceAffinityClientIP })
			case "timeout":
				change = append(change, timeout(int32(value[0]-'0')))
			case "distribution":
				change = append(change, distribution(value))
			case "labels":
				change = append(change, labels(slices.DeleteFunc(list, func(s string) bool { return s == "" })...))
			case "annotations":
				change = append(change, annotations(list...))
			case "families":
				var all []corev1.IPFamily
				for _, family := range list {
					all = append(all, corev1.IPFamily(family))
				}
				change = append(change, families(all...))
			default:
				ports = append(ports, field)
			}
		}
		views = append(views, newView(cluster, age, strings.Join(ports, " "), endpoints, change...))
	}
	return views
}

const agree = "The exports of all clusters agree."

func TestConflict(t *testing.T) {
	for name, test := range map[string]struct{ exports, reason, message string }{
		"one export":                {"80/TCP", "", ""},
		"equal exports":             {"a:80/TCP b:81/TCP labels=a=b timeout=5; b:81/TCP a:80/TCP labels=a=b timeout=5", "", ""},
		"endpoints are no conflict": {"80/TCP at=10.1.0.1; 80/TCP", "", ""},
		"type": {
			"80/TCP; 80/TCP headless; 80/TCP; 80/TCP headless; 80/TCP", "TypeConflict",
			`Conflicting type. Using "ClusterSetIP" from oldest service export in "cluster-1". 2/5 clusters disagree. "cluster-2" has "Headless". "cluster-4" has "Headless".`,
		},
		"type, the headless one is oldest": {
			"age=2 80/TCP; age=1 80/TCP headless", "TypeConflict",
			`Conflicting type. Using "Headless" from oldest service export in "cluster-2". 1/2 clusters disagree. "cluster-1" has "ClusterSetIP".`,
		},
		"equally old exports go by cluster": {
			"cluster=b 80/TCP headless; cluster=a age=1 80/TCP; cluster=c age=1 80/TCP headless", "TypeConflict",
			`Conflicting type. Using "ClusterSetIP" from oldest service export in "a". 2/3 clusters disagree. "b" has "Headless". "c" has "Headless".`,
		},
		"session affinity": {
			"80/TCP; 80/TCP affinity", "SessionAffinityConflict",
			`Conflicting sessionAffinity. Using "None" from oldest service export in "cluster-1". 1/2 clusters disagree. "cluster-2" has "ClientIP".`,
		},
		"session affinity config": {
			"80/TCP timeout=5; 80/TCP timeout=6; 80/TCP timeout=5", "SessionAffinityConfigConflict",
			`Conflicting sessionAffinityConfig. Using "clientIP.timeoutSeconds=5" from oldest service export in "cluster-1". 1/3 clusters disagree. "cluster-2" has "clientIP.timeoutSeconds=6".`,
		},
		"session affinity with a config": {
			"80/TCP; 80/TCP timeout=6", "SessionAffinityConfigConflict,SessionAffinityConflict",
			`Conflicting sessionAffinityConfig. Using "" from oldest service export in "cluster-1". 1/2 clusters disagree. "cluster-2" has "clientIP.timeoutSeconds=6". ` +
				`Conflicting sessionAffinity. Using "None" from oldest service export in "cluster-1". 1/2 clusters disagree. "cluster-2" has "ClientIP".`,
		},
		"more than a message names": {
			"80/TCP; 80/TCP local; 80/TCP local; 80/TCP local; 80/TCP local", "InternalTrafficPolicyConflict",
			`Conflicting internalTrafficPolicy. Using "Cluster" from oldest service export in "cluster-1". 4/5 clusters disagree. ` +
				`"cluster-2" has "Local". "cluster-3" has "Local". "cluster-4" has "Local". And 1 more.`,
		},
		"internal traffic policy": {
			"80/TCP local; 80/TCP", "InternalTrafficPolicyConflict",
			`Conflicting internalTrafficPolicy. Using "Local" from oldest service export in "cluster-1". 1/2 clusters disagree. "cluster-2" has "Cluster".`,
		},
		"traffic distribution": {
			"80/TCP distribution=PreferClose; 80/TCP; 80/TCP distribution=PreferSameNode", "TrafficDistributionConflict",
			`Conflicting trafficDistribution. Using "PreferClose" from oldest service export in "cluster-1". 2/3 clusters disagree. "cluster-2" has "". "cluster-3" has "PreferSameNode".`,
		},
		"exported labels": {
			"80/TCP labels=b=c,a=b; 80/TCP labels=a=b", "LabelsConflict",
			`Conflicting exportedLabels. Using "a=b,b=c" from oldest service export in "cluster-1". 1/2 clusters disagree. "cluster-2" has "a=b".`,
		},
		"exported annotations": {
			"80/TCP; 80/TCP annotations=a=b", "AnnotationsConflict",
			`Conflicting exportedAnnotations. Using "" from oldest service export in "cluster-1". 1/2 clusters disagree. "cluster-2" has "a=b".`,
		},
		"many annotations": {
			"80/TCP annotations=a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1; 80/TCP", "AnnotationsConflict",
			`Conflicting exportedAnnotations. Using "a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1" from oldest service export in "cluster-1". 1/2 clusters disagree. "cluster-2" has "".`,
		},
		"an empty set and none are equal": {"80/TCP labels=; 80/TCP", "", ""},
		"port added": {
			"http:80/TCP; http:80/TCP metrics:9090/TCP", "PortConflict",
			`Conflicting ports. Using "http:80/TCP" from oldest service export in "cluster-1". 1/2 clusters disagree. "cluster-2" has "http:80/TCP,metrics:9090/TCP".`,
		},
		"one name, two numbers": {
			"http:80/TCP; http:8080/TCP", "PortConflict",
			`Conflicting ports. Using "http:80/TCP" from oldest service export in "cluster-1". 1/2 clusters disagree. "cluster-2" has "http:8080/TCP".`,
		},
		"one name, two protocols": {
			"dns:53/UDP; dns:53/TCP", "PortConflict",
			`Conflicting ports. Using "dns:53/UDP" from oldest service export in "cluster-1". 1/2 clusters disagree. "cluster-2" has "dns:53/TCP".`,
		},
		"one number, two names": {
			"http:80/TCP; web:80/TCP; 80/TCP", "PortConflict",
			`Conflicting ports. Using "http:80/TCP" from oldest service export in "cluster-1". 2/3 clusters disagree. "cluster-2" has "web:80/TCP". "cluster-3" has "80/TCP".`,
		},
		"a family that all have": {"80/TCP families=IPv4,IPv6; 80/TCP families=IPv6", "", ""},
		"order of families":      {"80/TCP families=IPv4,IPv6; 80/TCP families=IPv6,IPv4", "", ""},
		"no family that all have": {
			"80/TCP families=IPv4; 80/TCP families=IPv6; 80/TCP families=IPv6,IPv4", "IPFamilyConflict",
			`Conflicting ipFamilies. Using "IPv4" from oldest service export in "cluster-1". 1/3 clusters disagree. "cluster-2" has "IPv6".`,
		},
		"backends out of reach for each family": {
			"80/TCP families=IPv6,IPv4; 80/TCP families=IPv4; 80/TCP families=IPv6", "IPFamilyConflict",
			`Conflicting ipFamilies. Using "IPv6,IPv4" from oldest service export in "cluster-1". 2/3 clusters disagree. "cluster-2" has "IPv4". "cluster-3" has "IPv6".`,
		},
		"a family of some endpoints of a headless service alone": {
			"80/TCP headless families=IPv4,IPv6; 80/TCP headless families=IPv4; 80/TCP headless families=IPv4", "IPFamilyConflict",
			`Conflicting ipFamilies. Using "IPv4" from oldest service export in "cluster-1". 1/3 clusters disagree. "cluster-1" has "IPv4,IPv6".`,
		},
		"all endpoints of a headless service have both families": {"80/TCP headless families=IPv4,IPv6; 80/TCP headless families=IPv6,IPv4", "", ""},
		"the oldest of a headless service has one family": {
			"80/TCP headless; 80/TCP headless families=IPv6,IPv4", "IPFamilyConflict",
			`Conflicting ipFamilies. Using "IPv4" from oldest service export in "cluster-1". 1/2 clusters disagree. "cluster-2" has "IPv6,IPv4".`,
		},
		"ports without names": {
			"80/TCP; 443/TCP", "PortConflict",
			`Conflicting ports. Using "80/TCP" from oldest service export in "cluster-1". 1/2 clusters disagree. "cluster-2" has "443/TCP".`,
		},
		"all at once": {
			"http:80/TCP labels=a=1 annotations=b=1 distribution=PreferClose; http:81/TCP headless timeout=7 local families=IPv6 distribution=PreferSameZone", "AnnotationsConflict,IPFamilyConflict,InternalTrafficPolicyConflict,LabelsConflict,PortConflict,SessionAffinityConfigConflict,SessionAffinityConflict,TrafficDistributionConflict,TypeConflict",
			`Conflicting exportedAnnotations. Using "b=1" from oldest service export in "cluster-1". 1/2 clusters disagree. "cluster-2" has "". ` +
				`Conflicting ipFamilies. Using "IPv4" from oldest service export in "cluster-1". 1/2 clusters disagree. "cluster-2" has "IPv6". ` +
				`Conflicting internalTrafficPolicy. Using "Cluster" from oldest service export in "cluster-1". 1/2 clusters disagree. "cluster-2" has "Local". ` +
				`Conflicting exportedLabels. Using "a=1" from oldest service export in "cluster-1". 1/2 clusters disagree. "cluster-2" has "". ` +
				`Conflicting ports. Using "http:80/TCP" from oldest service export in "cluster-1". 1/2 clusters disagree. "cluster-2" has "http:81/TCP". ` +
				`Conflicting sessionAffinityConfig. Using "" from oldest service export in "cluster-1". 1/2 clusters disagree. "cluster-2" has "clientIP.timeoutSeconds=7". ` +
				`Conflicting sessionAffinity. Using "None" from oldest service export in "cluster-1". 1/2 clusters disagree. "cluster-2" has "ClientIP". ` +
				`Conflicting trafficDistribution. Using "PreferClose" from oldest service export in "cluster-1". 1/2 clusters disagree. "cluster-2" has "PreferSameZone". ` +
				`Conflicting type. Using "ClusterSetIP" from oldest service export in "cluster-1". 1/2 clusters disagree. "cluster-2" has "Headless".`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := metav1.Condition{
				Type: "Conflict", Status: metav1.ConditionTrue, Reason: test.reason,
				Message: test.message,
			}
			if test.reason == "" {
				want.Status, want.Reason, want.Message = metav1.ConditionFalse, "NoConflicts", agree
			}
			// Every constituent export says the same.
			exports := exportsOf(t, test.exports)
			for _, view := range exports {
				result := Merge(newObserved(view.Cluster), contribute(exports...))
				diff(t, "condition in "+view.Cluster, conditionOf(t, result.ExportConditions, "Conflict"), want)
			}
		})
	}
}

// TestConflictBounds: the API refuses longer reasons and messages.
func TestConflictBounds(t *testing.T) {
	long := strings.Repeat("é\x00", 300)
	var ports []string
	for i := range 100 {
		ports = append(ports, fmt.Sprintf("%s-%d:%d/TCP(%s)", strings.Repeat("p", 59), i%90+10, i+1,
			strings.Repeat("a", 253)+"/"+strings.Repeat("b", 63)))
	}
	var keys []string
	for i := range 20 {
		keys = append(keys, fmt.Sprintf("%s/%s-%d=%s", strings.Repeat("a", 253), strings.Repeat("k", 60), i, long))
	}
	result := Merge(newObserved(strings.Repeat("x", 63)), contribute(
		newView(strings.Repeat("x", 63), 1, strings.Join(ports, " "), "", labels(keys...), annotations(keys...),
			distribution(long)),
		newView("cluster-2", 2, strings.Join(ports[1:], " "), "", headless, timeout(7), local, families("IPv6"), labels(keys[1:]...),
			annotations(keys[1:]...)),
		newView("cluster-3", 3, strings.Join(ports[2:], " "), "", headless, labels(keys[2:]...), annotations(keys[2:]...)),
		newView("cluster-4", 4, strings.Join(ports[3:], " "), "", headless, labels(keys[3:]...), annotations(keys[3:]...)),
	))
	conflict := conditionOf(t, result.ExportConditions, "Conflict")
	if len(conflict.Reason) > 1024 || len(conflict.Message) > 32768 {
		t.Errorf("reason of %d and message of %d bytes", len(conflict.Reason), len(conflict.Message))
	}
}

func TestExplain(t *testing.T) {
	for name, test := range map[string]struct {
		exports string
		want    string // precedence, then each property that is disagreed on
	}{
		"nothing":                    {"", ""},
		"one":                        {"cluster=east 80/TCP", "east"},
		"agree":                      {"cluster=west age=2 80/TCP; cluster=east age=1 80/TCP", "east west"},
		"type":                       {"cluster=east age=2 80/TCP headless; cluster=west age=1 80/TCP", `west east; type "ClusterSetIP" (east "Headless")`},
		"a tie is by name":           {"cluster=west 80/TCP; cluster=east age=1 80/TCP headless", `east west; type "Headless" (west "ClusterSetIP")`},
		"ports are united":           {"cluster=east http:80/TCP; cluster=west http:80/TCP api:90/TCP; cluster=north http:80/TCP", `east west north; ports "api:90/TCP,http:80/TCP" (west "api:90/TCP,http:80/TCP")`},
		"families are what all have": {"cluster=east 80/TCP families=IPv4; cluster=west 80/TCP families=IPv6", `east west; ipFamilies "IPv4" (west "IPv6")`},
		"several":                    {"cluster=east 80/TCP local; cluster=west 80/TCP labels=a=1", `east west; internalTrafficPolicy "Local" (west "Cluster"); exportedLabels "" (west "a=1")`},
	} {
		t.Run(name, func(t *testing.T) {
			contributions := contribute(exportsOf(t, test.exports)...)
			account := Explain(contributions)
			if got := accountText(account); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			slices.Reverse(contributions)
			diff(t, "in another order", accountText(Explain(contributions)), test.want)

			// It says what the condition says.
			if test.exports == "" {
				return
			}
			condition := conditionOf(t, Merge(newObserved(contributions[0].View.Cluster), contributions).ExportConditions,
				"Conflict")
			if account.Conflict == "" {
				account.Conflict = agree
			}
			diff(t, "message", account.Conflict, condition.Message)
			var reasons []string
			for _, property := range account.Properties {
				if len(property.Dissent) > 0 {
					reasons = append(reasons, string(property.Reason))
				}
			}
			slices.Sort(reasons)
			if reason := strings.Join(reasons, ","); reason != condition.Reason && condition.Reason != "NoConflicts" {
				t.Errorf("got reasons %s, the condition has %s", reason, condition.Reason)
			}
		})
	}
}

func accountText(account Account) string {
	text := strings.Join(account.Precedence, " ")
	for _, property := range account.Properties {
		if len(property.Dissent) == 0 {
			continue
		}
		text += fmt.Sprintf("; %s %q", property.Field, property.Text(account.Spec))
		for _, dissent := range property.Dissent {
			text += fmt.Sprintf(" (%s %q)", dissent.Cluster, property.Text(dissent.Spec))
		}
	}
	return text
}

// TestRankPrecedesCreation: a cluster states the creation times of its exports itself. One that the operator ranks
// behind the others wins no conflict with them, however old it says it is.
func TestRankPrecedesCreation(t *testing.T) {
	honest := newView("east", 5, "http:80/TCP", "10.1.0.1")
	for name, lie := range map[string]*export.View{
		"type":                    newView("mallory", 1, "http:80/TCP", "10.6.6.6", headless),
		"the name of a port":      newView("mallory", 1, "http:81/TCP", "10.6.6.6"),
		"internal traffic policy": newView("mallory", 1, "http:80/TCP", "10.6.6.6", local),
	} {
		t.Run(name, func(t *testing.T) {
			observed, before := settled(t, newObserved("east"), contribute(honest))
			contributions := contribute(lie, honest)
			contributions[0].Rank = 1
			result := Merge(observed, contributions)
			diff(t, "type", result.ServiceImport.Spec.Type, before.ServiceImport.Spec.Type)
			diff(t, "IPs", result.ServiceImport.Spec.IPs, before.ServiceImport.Spec.IPs)
			diff(t, "policy", result.ServiceImport.Spec.InternalTrafficPolicy,
				before.ServiceImport.Spec.InternalTrafficPolicy)
			diff(t, "ports", result.ServiceImport.Spec.Ports, before.ServiceImport.Spec.Ports)
			for _, slice := range result.EndpointSlices {
				if slice.Labels[export.LabelSourceCluster] == "east" {
					diff(t, "ports of east", endpointPorts(slice), "http:8080/TCP")
				}
			}
		})
	}
}

func TestRanks(t *testing.T) {
	views := []*export.View{
		newView("a", 3, "80/TCP", ""), newView("b", 2, "80/TCP", "", headless),
		newView("c", 1, "80/TCP", ""), newView("d", 1, "80/TCP", "", headless),
	}
	for name, test := range map[string]struct {
		ranks   []int
		want    []string
		message string
	}{
		"all alike": {
			[]int{0, 0, 0, 0},
			[]string{"c", "d", "b", "a"},
			`Conflicting type. Using "ClusterSetIP" from oldest service export in "c". 2/4 clusters disagree.`,
		},
		"all alike, and not 0": {
			[]int{7, 7, 7, 7},
			[]string{"c", "d", "b", "a"},
			`Conflicting type. Using "ClusterSetIP" from oldest service export in "c". 2/4 clusters disagree.`,
		},
		"the oldest is first by rank too": {
			[]int{0, 0, -1, 0},
			[]string{"c", "d", "b", "a"},
			`Conflicting type. Using "ClusterSetIP" from oldest service export in "c". 2/4 clusters disagree.`,
		},
		"the oldest is last": {
			[]int{0, 0, 1, 0},
			[]string{"d", "b", "a", "c"},
			`Conflicting type. Using "Headless" from first-ranked service export in "d". 2/4 clusters disagree.`,
		},
		"the youngest is first": {
			[]int{-5, 0, 0, 0},
			[]string{"a", "c", "d", "b"},
			`Conflicting type. Using "ClusterSetIP" from first-ranked service export in "a". 2/4 clusters disagree.`,
		},
		"each has its own": {
			[]int{2, 1, 4, 3},
			[]string{"b", "a", "d", "c"},
			`Conflicting type. Using "Headless" from first-ranked service export in "b". 2/4 clusters disagree.`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			contributions := contribute(views...)
			for i, rank := range test.ranks {
				contributions[i].Rank = rank
			}
			for range 2 {
				account := Explain(contributions)
				diff(t, "precedence", account.Precedence, test.want)
				diff(t, "ranked", account.Ranked, test.want[0] != "c")
				condition := conditionOf(t, Merge(newObserved("a"), contributions).ExportConditions,
					string(v1beta1.ServiceExportConditionConflict))
				if !strings.HasPrefix(condition.Message, test.message+" ") {
					t.Errorf("message %q, want %q", condition.Message, test.message)
				}
				slices.Reverse(contributions)
			}
		})
	}
}
