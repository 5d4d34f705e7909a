// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

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

func distribution(value string) func(*export.View) {
	return func(view *export.View) { view.Spec.TrafficDistribution = value }
}

func labels(pairs ...string) func(*export.View) {
	return func(view *export.View) { view.Spec.Labels = pairsOf(pairs) }
}

func annotations(pairs ...string) func(*export.View) {
	return func(view *export.View) { view.Spec.Annotations = pairsOf(pairs) }
}

func pairsOf(pairs []string) map[string]string {
	m := make(map[string]string)
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		m[key] = value
	}
	return m
}

const agree = "The exports of all clusters agree."

func TestConflict(t *testing.T) {
	type exports = []*export.View
	v := newView
	for name, test := range map[string]struct {
		exports exports
		reason  string
		message string
	}{
		"one export": {exports{v("cluster-1", 1, "80/TCP", "")}, "NoConflicts", agree},
		"equal exports": {
			exports{
				v("cluster-1", 1, "a:80/TCP b:81/TCP", "", labels("a=b"), timeout(5)),
				v("cluster-2", 2, "b:81/TCP a:80/TCP", "", labels("a=b"), timeout(5)),
			},
			"NoConflicts", agree,
		},
		"endpoints are no conflict": {
			exports{v("cluster-1", 1, "80/TCP", "10.1.0.1"), v("cluster-2", 2, "80/TCP", "")}, "NoConflicts", agree,
		},
		"type": {
			exports{
				v("cluster-1", 1, "80/TCP", ""), v("cluster-2", 2, "80/TCP", "", headless),
				v("cluster-3", 3, "80/TCP", ""),
				v("cluster-4", 4, "80/TCP", "", headless), v("cluster-5", 5, "80/TCP", ""),
			},
			"TypeConflict", `Conflicting type. Using "ClusterSetIP" from oldest service export in "cluster-1". 2/5 clusters disagree.`,
		},
		"type, the headless one is oldest": {
			exports{v("cluster-1", 2, "80/TCP", ""), v("cluster-2", 1, "80/TCP", "", headless)},
			"TypeConflict",
			`Conflicting type. Using "Headless" from oldest service export in "cluster-2". 1/2 clusters disagree.`,
		},
		"equally old exports go by cluster": {
			exports{v("b", 1, "80/TCP", "", headless), v("a", 1, "80/TCP", ""), v("c", 1, "80/TCP", "", headless)},
			"TypeConflict",
			`Conflicting type. Using "ClusterSetIP" from oldest service export in "a". 2/3 clusters disagree.`,
		},
		"session affinity": {
			exports{
				v("cluster-1", 1, "80/TCP", ""),
				v("cluster-2", 2, "80/TCP", "",
					func(v *export.View) { v.Spec.SessionAffinity = corev1.ServiceAffinityClientIP }),
			},
			"SessionAffinityConflict", `Conflicting sessionAffinity. Using "None" from oldest service export in "cluster-1". 1/2 clusters disagree.`,
		},
		"session affinity config": {
			exports{
				v("cluster-1", 1, "80/TCP", "", timeout(5)), v("cluster-2", 2, "80/TCP", "", timeout(6)),
				v("cluster-3", 3, "80/TCP", "", timeout(5)),
			},
			"SessionAffinityConfigConflict",
			`Conflicting sessionAffinityConfig. Using "clientIP.timeoutSeconds=5" from oldest service export in "cluster-1". 1/3 clusters disagree.`,
		},
		"session affinity with a config": {
			exports{v("cluster-1", 1, "80/TCP", ""), v("cluster-2", 2, "80/TCP", "", timeout(6))},
			"SessionAffinityConfigConflict,SessionAffinityConflict",
			`Conflicting sessionAffinityConfig. Using "" from oldest service export in "cluster-1". 1/2 clusters disagree. ` +
				`Conflicting sessionAffinity. Using "None" from oldest service export in "cluster-1". 1/2 clusters disagree.`,
		},
		"internal traffic policy": {
			exports{v("cluster-1", 1, "80/TCP", "", local), v("cluster-2", 2, "80/TCP", "")},
			"InternalTrafficPolicyConflict",
			`Conflicting internalTrafficPolicy. Using "Local" from oldest service export in "cluster-1". 1/2 clusters disagree.`,
		},
		"traffic distribution": {
			exports{
				v("cluster-1", 1, "80/TCP", "", distribution("PreferClose")), v("cluster-2", 2, "80/TCP", ""),
				v("cluster-3", 3, "80/TCP", "", distribution("PreferSameNode")),
			},
			"TrafficDistributionConflict",
			`Conflicting trafficDistribution. Using "PreferClose" from oldest service export in "cluster-1". 2/3 clusters disagree.`,
		},
		"exported labels": {
			exports{
				v("cluster-1", 1, "80/TCP", "", labels("b=c", "a=b")),
				v("cluster-2", 2, "80/TCP", "", labels("a=b")),
			},
			"LabelsConflict", `Conflicting exportedLabels. Using "a=b,b=c" from oldest service export in "cluster-1". 1/2 clusters disagree. "b" is missing in "cluster-2".`,
		},
		"exported annotations": {
			exports{v("cluster-1", 1, "80/TCP", ""), v("cluster-2", 2, "80/TCP", "", annotations("a=b"))},
			"AnnotationsConflict", `Conflicting exportedAnnotations. Using "" from oldest service export in "cluster-1". 1/2 clusters disagree. "a" of "cluster-2" has no effect: set it in "cluster-1", too, or remove it.`,
		},
		"a border of the newer export": {
			exports{
				v("cluster-1", 1, "80/TCP", "", annotations("clusterset-dns.github.io/prefer=local")),
				v("cluster-2", 2, "80/TCP", "", annotations("clusterset-dns.github.io/prefer=local", "clusterset-dns.github.io/within=local")),
				v("cluster-3", 3, "80/TCP", "", annotations("clusterset-dns.github.io/prefer=none")),
			},
			"AnnotationsConflict",
			`Conflicting exportedAnnotations. Using "clusterset-dns.github.io/prefer=local" from oldest service export in "cluster-1". 2/3 clusters disagree. ` +
				`"clusterset-dns.github.io/within" of "cluster-2" has no effect: set it in "cluster-1", too, or remove it. ` +
				`"clusterset-dns.github.io/prefer" of "cluster-3" differs.`,
		},
		"many annotations": {
			exports{
				v("cluster-1", 1, "80/TCP", "", annotations("a=1", "b=1", "c=1", "d=1", "e=1", "f=1", "g=1", "h=1", "i=1", "j=1", "k=1", "l=1")),
				v("cluster-2", 2, "80/TCP", ""),
			},
			"AnnotationsConflict",
			`Conflicting exportedAnnotations. Using "a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1" from oldest service export in "cluster-1". 1/2 clusters disagree. ` +
				`"a" is missing in "cluster-2". "b" is missing in "cluster-2". "c" is missing in "cluster-2". "d" is missing in "cluster-2". "e" is missing in "cluster-2". ` +
				`"f" is missing in "cluster-2". "g" is missing in "cluster-2". "h" is missing in "cluster-2". "i" is missing in "cluster-2". "j" is missing in "cluster-2". 2 more differences.`,
		},
		"an empty set and none are equal": {
			exports{v("cluster-1", 1, "80/TCP", "", labels()), v("cluster-2", 2, "80/TCP", "")}, "NoConflicts", agree,
		},

		"port added": {
			exports{v("cluster-1", 1, "http:80/TCP", ""), v("cluster-2", 2, "http:80/TCP metrics:9090/TCP", "")},
			"PortConflict",
			`Conflicting ports. Using "http:80/TCP" from oldest service export in "cluster-1". 1/2 clusters disagree. "metrics:9090/TCP" of "cluster-2" is added.`,
		},
		"port missing": {
			exports{v("cluster-1", 1, "http:80/TCP metrics:9090/TCP", ""), v("cluster-2", 2, "http:80/TCP", "")},
			"PortConflict",
			`Conflicting ports. Using "http:80/TCP,metrics:9090/TCP" from oldest service export in "cluster-1". 1/2 clusters disagree. "metrics:9090/TCP" is missing in "cluster-2".`,
		},
		"one name, two numbers": {
			exports{v("cluster-1", 1, "http:80/TCP", ""), v("cluster-2", 2, "http:8080/TCP", "")},
			"PortConflict",
			`Conflicting ports. Using "http:80/TCP" from oldest service export in "cluster-1". 1/2 clusters disagree. ` +
				`"http:8080/TCP" of "cluster-2" is not served, because its name is taken. "http:80/TCP" is missing in "cluster-2".`,
		},
		"one name, two protocols": {
			exports{v("cluster-1", 1, "dns:53/UDP", ""), v("cluster-2", 2, "dns:53/TCP", "")},
			"PortConflict",
			`Conflicting ports. Using "dns:53/UDP" from oldest service export in "cluster-1". 1/2 clusters disagree. ` +
				`"dns:53/TCP" of "cluster-2" is not served, because its name is taken. "dns:53/UDP" is missing in "cluster-2".`,
		},
		"one number, two names": {
			exports{
				v("cluster-1", 1, "http:80/TCP", ""), v("cluster-2", 2, "web:80/TCP", ""),
				v("cluster-3", 3, "80/TCP", ""),
			},
			"PortConflict",
			`Conflicting ports. Using "http:80/TCP" from oldest service export in "cluster-1". 2/3 clusters disagree. ` +
				`"web:80/TCP" of "cluster-2" is served as "http:80/TCP". "80/TCP" of "cluster-3" is served as "http:80/TCP".`,
		},
		"application protocol": {
			exports{v("cluster-1", 1, "http:80/TCP(http)", ""), v("cluster-2", 2, "http:80/TCP(kubernetes.io/h2c)",
				"")},
			"PortConflict",
			`Conflicting ports. Using "http:80/TCP(http)" from oldest service export in "cluster-1". 1/2 clusters disagree. ` +
				`"http:80/TCP(kubernetes.io/h2c)" of "cluster-2" is served as "http:80/TCP(http)".`,
		},
		"many differences": {
			exports{
				v("cluster-1", 1, "", "", headless),
				v("cluster-2", 2, "a:1/TCP b:2/TCP c:3/TCP d:4/TCP e:5/TCP f:6/TCP g:7/TCP h:8/TCP i:9/TCP j:10/TCP k:11/TCP l:12/TCP", "", headless),
			},
			"PortConflict",
			`Conflicting ports. Using "" from oldest service export in "cluster-1". 1/2 clusters disagree. "a:1/TCP" of "cluster-2" is added. "b:2/TCP" of "cluster-2" is added. ` +
				`"c:3/TCP" of "cluster-2" is added. "d:4/TCP" of "cluster-2" is added. "e:5/TCP" of "cluster-2" is added. "f:6/TCP" of "cluster-2" is added. ` +
				`"g:7/TCP" of "cluster-2" is added. "h:8/TCP" of "cluster-2" is added. "i:9/TCP" of "cluster-2" is added. "j:10/TCP" of "cluster-2" is added. 2 more differences.`,
		},

		"a family that all have": {
			exports{
				v("cluster-1", 1, "80/TCP", "", families("IPv4", "IPv6")),
				v("cluster-2", 2, "80/TCP", "", families("IPv6")),
			}, "NoConflicts", agree,
		},
		"order of families": {
			exports{
				v("cluster-1", 1, "80/TCP", "", families("IPv4", "IPv6")),
				v("cluster-2", 2, "80/TCP", "", families("IPv6", "IPv4")),
			}, "NoConflicts", agree,
		},
		"no family that all have": {
			exports{
				v("cluster-1", 1, "80/TCP", "", families("IPv4")),
				v("cluster-2", 2, "80/TCP", "", families("IPv6")),
				v("cluster-3", 3, "80/TCP", "", families("IPv6", "IPv4")),
			},
			"IPFamilyConflict", `Conflicting ipFamilies. Using "IPv4" from oldest service export in "cluster-1". 1/3 clusters disagree.`,
		},
		"backends out of reach for each family": {
			exports{
				v("cluster-1", 1, "80/TCP", "", families("IPv6", "IPv4")),
				v("cluster-2", 2, "80/TCP", "", families("IPv4")), v("cluster-3", 3, "80/TCP", "", families("IPv6")),
			},
			"IPFamilyConflict", `Conflicting ipFamilies. Using "IPv6,IPv4" from oldest service export in "cluster-1". 2/3 clusters disagree.`,
		},

		"a family of some endpoints of a headless service alone": {
			exports{
				v("cluster-1", 1, "80/TCP", "", headless, families("IPv4", "IPv6")),
				v("cluster-2", 2, "80/TCP", "", headless, families("IPv4")),
				v("cluster-3", 3, "80/TCP", "", headless, families("IPv4")),
			},
			"IPFamilyConflict", `Conflicting ipFamilies. Using "IPv4" from oldest service export in "cluster-1". 1/3 clusters disagree.`,
		},
		"all endpoints of a headless service have both families": {
			exports{
				v("cluster-1", 1, "80/TCP", "", headless, families("IPv4", "IPv6")),
				v("cluster-2", 2, "80/TCP", "", headless, families("IPv6", "IPv4")),
			}, "NoConflicts", agree,
		},
		"the oldest of a headless service has one family": {
			exports{
				v("cluster-1", 1, "80/TCP", "", headless),
				v("cluster-2", 2, "80/TCP", "", headless, families("IPv6", "IPv4")),
			},
			"IPFamilyConflict", `Conflicting ipFamilies. Using "IPv4" from oldest service export in "cluster-1". 1/2 clusters disagree.`,
		},

		"ports without names": {
			exports{v("cluster-1", 1, "80/TCP", ""), v("cluster-2", 2, "443/TCP", "")},
			"PortConflict",
			`Conflicting ports. Using "80/TCP" from oldest service export in "cluster-1". 1/2 clusters disagree. "80/TCP" is named "tcp-80", because only a single port can have no name. ` +
				`"443/TCP" is named "tcp-443", because only a single port can have no name. "443/TCP" of "cluster-2" is added. "80/TCP" is missing in "cluster-2".`,
		},

		"all at once": {
			exports{
				v("cluster-1", 1, "http:80/TCP", "", labels("a=1"), annotations("b=1"), distribution("PreferClose")),
				v("cluster-2", 2, "http:81/TCP", "", headless, timeout(7), local, families("IPv6"),
					distribution("PreferSameZone")),
			},
			"AnnotationsConflict,IPFamilyConflict,InternalTrafficPolicyConflict,LabelsConflict,PortConflict,SessionAffinityConfigConflict,SessionAffinityConflict,TrafficDistributionConflict,TypeConflict",
			`Conflicting exportedAnnotations. Using "b=1" from oldest service export in "cluster-1". 1/2 clusters disagree. "b" is missing in "cluster-2". ` +
				`Conflicting ipFamilies. Using "IPv4" from oldest service export in "cluster-1". 1/2 clusters disagree. ` +
				`Conflicting internalTrafficPolicy. Using "Cluster" from oldest service export in "cluster-1". 1/2 clusters disagree. ` +
				`Conflicting exportedLabels. Using "a=1" from oldest service export in "cluster-1". 1/2 clusters disagree. "a" is missing in "cluster-2". ` +
				`Conflicting ports. Using "http:80/TCP" from oldest service export in "cluster-1". 1/2 clusters disagree. ` +
				`"http:81/TCP" of "cluster-2" is not served, because its name is taken. "http:80/TCP" is missing in "cluster-2". ` +
				`Conflicting sessionAffinityConfig. Using "" from oldest service export in "cluster-1". 1/2 clusters disagree. ` +
				`Conflicting sessionAffinity. Using "None" from oldest service export in "cluster-1". 1/2 clusters disagree. ` +
				`Conflicting trafficDistribution. Using "PreferClose" from oldest service export in "cluster-1". 1/2 clusters disagree. ` +
				`Conflicting type. Using "ClusterSetIP" from oldest service export in "cluster-1". 1/2 clusters disagree.`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := metav1.Condition{
				Type: "Conflict", Status: metav1.ConditionTrue, Reason: test.reason,
				Message: test.message, ObservedGeneration: 3,
			}
			if test.reason == "NoConflicts" {
				want.Status = metav1.ConditionFalse
			}
			// Every constituent export says the same.
			for _, view := range test.exports {
				result := Merge(newObserved(view.Cluster), contribute(test.exports...))
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
		newView("cluster-2", 2, "http:81/TCP", "", headless, timeout(7), local, families("IPv6")),
	))
	conflict := conditionOf(t, result.ExportConditions, "Conflict")
	if len(conflict.Reason) > 1024 || len(conflict.Message) > 32768 {
		t.Errorf("reason of %d and message of %d bytes", len(conflict.Reason), len(conflict.Message))
	}
}
