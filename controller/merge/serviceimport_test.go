// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

var derivedName = export.DerivedServiceName(web)

func importOwnerReference(uid string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: "multicluster.x-k8s.io/v1beta1", Kind: "ServiceImport", Name: "web", UID: types.UID(uid),
		Controller: ptr.To(true),
	}}
}

func TestServiceImport(t *testing.T) {
	contributions := contribute(
		newView("west", 1, "http:80/TCP", "10.2.0.1", timeout(60), local, distribution("PreferClose"),
			labels("team=red"), annotations("note=x"), families("IPv4", "IPv6")),
		newView("east", 2, "http:80/TCP", "10.1.0.1", labels("team=blue"), families("IPv4", "IPv6")),
	)
	observed := newObserved("east")
	first := Merge(observed, contributions)
	want := &v1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "demo", Name: "web",
			Labels: map[string]string{"team": "red", export.LabelManagedBy: export.Manager},
			Annotations: map[string]string{
				"note": "x", export.AnnotationDerivedService: derivedName,
				export.AnnotationExported: `{"labels":["team"],"annotations":["note"]}`,
			},
		},
		Spec: v1beta1.ServiceImportSpec{
			Type:            v1beta1.ClusterSetIP,
			Ports:           []v1beta1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}},
			SessionAffinity: corev1.ServiceAffinityClientIP,
			SessionAffinityConfig: &corev1.SessionAffinityConfig{
				ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To[int32](60)},
			},
			IPFamilies:            []corev1.IPFamily{"IPv4", "IPv6"},
			InternalTrafficPolicy: ptr.To(corev1.ServiceInternalTrafficPolicyLocal),
			TrafficDistribution:   ptr.To("PreferClose"),
		},
		Status: v1beta1.ServiceImportStatus{
			EndpointSliceObjects: v1beta1.EndpointSliceObjectsPresent,
			Clusters:             []v1beta1.ClusterStatus{{Cluster: "east"}, {Cluster: "west"}},
			Conditions: []metav1.Condition{{
				Type: "Ready", Status: metav1.ConditionFalse, Reason: "Pending", Message: "Service demo/" +
					derivedName + " has no IP yet.",
			}},
		},
	}
	diff(t, "new import", first.ServiceImport, want)
	wantService := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "demo", Name: derivedName,
			Labels:          map[string]string{export.LabelManagedBy: export.Manager, export.LabelService: "web"},
			OwnerReferences: importOwnerReference(""),
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP,
			Ports: []corev1.ServicePort{{
				Name: "http", Protocol: corev1.ProtocolTCP, Port: 80,
				TargetPort: intstr.FromInt32(80),
			}},
			IPFamilies:      []corev1.IPFamily{"IPv4", "IPv6"},
			IPFamilyPolicy:  ptr.To(corev1.IPFamilyPolicyRequireDualStack),
			SessionAffinity: corev1.ServiceAffinityClientIP,
			SessionAffinityConfig: &corev1.SessionAffinityConfig{
				ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To[int32](60)},
			},
			InternalTrafficPolicy: ptr.To(corev1.ServiceInternalTrafficPolicyLocal),
			TrafficDistribution:   ptr.To("PreferClose"),
		},
	}
	diff(t, "new derived Service", first.DerivedService, wantService)

	_, last := settled(t, observed, contributions)
	want.UID = "uid-of-import"
	want.Spec.IPs = []string{"10.96.0.7", "fd00:96::7"}
	want.Status.Conditions = []metav1.Condition{{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready",
		Message: "The service is imported.",
	}}
	diff(t, "import at rest", last.ServiceImport, want)
	wantService.OwnerReferences = importOwnerReference("uid-of-import")
	wantService.Spec.ClusterIP, wantService.Spec.ClusterIPs = "10.96.0.7", []string{"10.96.0.7", "fd00:96::7"}
	diff(t, "derived Service at rest", last.DerivedService, wantService)
}

// TestImportMetadata: what exports set goes with them, and what others set on an import and its Service stays.
func TestImportMetadata(t *testing.T) {
	observed, _ := settled(t, newObserved("east"),
		contribute(newView("east", 1, "80/TCP", "", labels("team=red"),
			annotations(export.AnnotationPrefer+"=cluster"))))
	observed.ServiceImport.Labels["app.kubernetes.io/part-of"] = "shop"
	observed.ServiceImport.Labels["argocd.argoproj.io/instance"] = "shop"
	observed.ServiceImport.Annotations["kubectl.kubernetes.io/note"] = "kept"
	observed.ServiceImport.Annotations["example.com/owner"] = "red"
	observed.ServiceImport.Finalizers = []string{"example.com/wait"}
	observed.DerivedService.Annotations = map[string]string{"example.com/mesh": "on"}
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "uid-of-other"}
	observed.DerivedService.OwnerReferences = append([]metav1.OwnerReference{other},
		observed.DerivedService.OwnerReferences...)

	result := Merge(observed, contribute(newView("east", 1, "80/TCP", "", labels("tier=front"))))
	diff(t, "labels", result.ServiceImport.Labels, map[string]string{
		"tier": "front", "app.kubernetes.io/part-of": "shop", "argocd.argoproj.io/instance": "shop",
		export.LabelManagedBy: export.Manager,
	})
	diff(t, "annotations", result.ServiceImport.Annotations, map[string]string{
		"kubectl.kubernetes.io/note": "kept", "example.com/owner": "red", export.AnnotationDerivedService: derivedName,
		export.AnnotationExported: `{"labels":["tier"]}`,
	})
	diff(t, "owners of the derived Service", result.DerivedService.OwnerReferences,
		append([]metav1.OwnerReference{other}, importOwnerReference("uid-of-import")...))
	diff(t, "finalizers", result.ServiceImport.Finalizers, []string{"example.com/wait"})
	diff(t, "labels of the derived Service", result.DerivedService.Labels, map[string]string{
		export.LabelManagedBy: export.Manager, export.LabelService: "web",
	})
	diff(t, "annotations of the derived Service", result.DerivedService.Annotations,
		map[string]string{"example.com/mesh": "on"})
}

func TestTypeChanges(t *testing.T) {
	observed, clusterSetIP := settled(t, newObserved("east"), contribute(newView("east", 1, "80/TCP", "10.1.0.1")))

	observed, result := settled(t, observed, contribute(newView("east", 1, "80/TCP", "10.1.0.1", headless)))
	if result.DerivedService != nil || len(result.ServiceImport.Spec.IPs) > 0 {
		t.Errorf("a headless import has IPs %v and Service %v", result.ServiceImport.Spec.IPs, result.DerivedService)
	}
	diff(t, "annotations", result.ServiceImport.Annotations, map[string]string{})
	diff(t, "families", result.ServiceImport.Spec.IPFamilies, []corev1.IPFamily{"IPv4"})
	diff(t, "labels of the slice", result.EndpointSlices[0].Labels, map[string]string{
		export.LabelService: "web", export.LabelSourceCluster: "east", export.LabelSliceManagedBy: export.Manager,
		export.LabelHeadless: "",
	})
	diff(t, "ready", conditionOf(t, result.ServiceImport.Status.Conditions, "Ready").Status, metav1.ConditionTrue)

	_, result = settled(t, observed, contribute(newView("east", 1, "80/TCP", "10.1.0.1")))
	diff(t, "back again", result, clusterSetIP)
}

// TestMixedTypes: the Service of a cluster that lost the conflict is reached all the same.
func TestMixedTypes(t *testing.T) {
	for _, oldest := range []int{1, 3} {
		views := contribute(newView("east", oldest, "http:80/TCP", "10.1.0.1"),
			newView("west", 2, "http:80/TCP", "10.2.0.1", headless))
		for _, cluster := range []string{"east", "west", "north"} {
			result := Merge(newObserved(cluster), views)
			for _, slice := range result.EndpointSlices {
				diff(t, "ports", endpointPorts(slice), "http:8080/TCP")
				_, hidden := slice.Labels[export.LabelHeadless]
				_, served := slice.Labels[export.LabelKubernetesService]
				if isHeadless := oldest == 3; hidden != isHeadless || served == isHeadless {
					t.Errorf("labels %v of a slice in %s", slice.Labels, cluster)
				}
			}
			if len(result.EndpointSlices) != 2 {
				t.Errorf("%d slices", len(result.EndpointSlices))
			}
		}
	}
}

func TestIPFamilies(t *testing.T) {
	const v4, v6 = corev1.IPv4Protocol, corev1.IPv6Protocol
	type list = []corev1.IPFamily
	for name, test := range map[string]struct {
		exports []list
		cluster list
		derived []string // IPs of the Service that exists
		old     []string // IPs of the import that exists
		want    list
		ips     []string
		ready   string
		renew   bool // the Service must be made anew
	}{
		"first time": {
			exports: []list{{v4, v6}}, cluster: list{v4, v6},
			want: list{v4, v6}, ready: "Pending",
		},
		"order of the export": {
			exports: []list{{v6, v4}}, cluster: list{v4, v6},
			want: list{v6, v4}, ready: "Pending",
		},
		"order of the derived Service": {
			exports: []list{{v6, v4}}, cluster: list{v4, v6},
			derived: []string{"10.0.0.1", "fd00::1"}, want: list{v4, v6}, ips: []string{"10.0.0.1", "fd00::1"},
			ready: "Ready",
		},
		"order of the IPs, the Service is gone": {
			exports: []list{{v6, v4}}, cluster: list{v4, v6},
			old: []string{"10.0.0.1", "fd00::1"}, want: list{v4, v6}, ips: []string{"10.0.0.1", "fd00::1"},
			ready: "Pending",
		},
		"the Service decides over the import": {
			exports: []list{{v4}}, cluster: list{v4},
			derived: []string{"10.0.0.2"}, old: []string{"10.0.0.1"}, want: list{v4}, ips: []string{"10.0.0.2"},
			ready: "Ready",
		},
		"intersection": {
			exports: []list{{v4, v6}, {v6}}, cluster: list{v4, v6},
			want: list{v6}, ready: "Pending",
		},
		"no intersection, the oldest's": {
			exports: []list{{v4}, {v6}}, cluster: list{v4, v6}, want: list{v4},
			ready: "Pending",
		},
		"the cluster has one": {
			exports: []list{{v4, v6}}, cluster: list{v6}, want: list{v6},
			ready: "Pending",
		},
		"the cluster has none of them": {
			exports: []list{{v6}}, cluster: list{v4},
			ready: "IPFamilyNotSupported",
		},
		"the cluster is not known": {exports: []list{{v6, v4}}, want: list{v6, v4}, ready: "Pending"},
		"a second one comes": {
			exports: []list{{v4, v6}}, cluster: list{v4, v6},
			derived: []string{"10.0.0.1"}, want: list{v4, v6}, ips: []string{"10.0.0.1"}, ready: "Pending",
		},
		"the second one goes": {
			exports: []list{{v4}}, cluster: list{v4, v6},
			derived: []string{"10.0.0.1", "fd00::1"}, want: list{v4}, ips: []string{"10.0.0.1"}, ready: "Ready",
		},
		"the first one goes": {
			exports: []list{{v6}}, cluster: list{v4, v6},
			derived: []string{"10.0.0.1", "fd00::1"}, want: list{v6}, ips: []string{"fd00::1"}, ready: "Ready",
			renew: true,
		},
		"the other one comes": {
			exports: []list{{v6}}, cluster: list{v4, v6},
			derived: []string{"10.0.0.1"}, want: list{v6}, ready: "Pending", renew: true,
		},
		"IPs that are none": {
			exports: []list{{v4}}, cluster: list{v4}, derived: []string{"None"},
			old: []string{"x"}, want: list{v4}, ready: "Pending", renew: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var views []*export.View
			for i, exported := range test.exports {
				views = append(views, newView(fmt.Sprintf("cluster-%d", i+1), i+1, "80/TCP", "", families(exported...)))
			}
			observed := newObserved("cluster-1")
			observed.IPFamilies = test.cluster
			managed := map[string]string{export.LabelManagedBy: export.Manager}
			if test.derived != nil {
				observed.DerivedService = &corev1.Service{
					ObjectMeta: metav1.ObjectMeta{Labels: managed},
					Spec:       corev1.ServiceSpec{ClusterIP: test.derived[0], ClusterIPs: test.derived},
				}
				for _, ip := range test.derived {
					observed.DerivedService.Spec.IPFamilies = append(observed.DerivedService.Spec.IPFamilies,
						familyOf(ip))
				}
			}
			if test.old != nil {
				observed.ServiceImport = &v1beta1.ServiceImport{
					ObjectMeta: metav1.ObjectMeta{Labels: managed},
					Spec:       v1beta1.ServiceImportSpec{IPs: test.old},
				}
			}
			result := Merge(observed, contribute(views...))
			diff(t, "families", result.ServiceImport.Spec.IPFamilies, test.want)
			diff(t, "IPs", result.ServiceImport.Spec.IPs, test.ips)
			diff(t, "ready", conditionOf(t, result.ServiceImport.Status.Conditions, "Ready").Reason, test.ready)
			if test.want == nil {
				if result.DerivedService != nil {
					t.Errorf("a derived Service without a family")
				}
				return
			}
			diff(t, "families of the Service", result.DerivedService.Spec.IPFamilies, test.want)
			diff(t, "IPs of the Service", result.DerivedService.Spec.ClusterIPs, test.ips)
			if first := append(test.ips, "")[0]; result.DerivedService.Spec.ClusterIP != first {
				t.Errorf("clusterIP = %q, want %q", result.DerivedService.Spec.ClusterIP, first)
			}
			if observed.DerivedService != nil {
				diff(t, "recreation", NeedsRecreation(observed.DerivedService, result.DerivedService), test.renew)
			}
		})
	}
}

// TestIPFamilyNotSupported: the slices are there all the same, for others to read and to remember.
func TestIPFamilyNotSupported(t *testing.T) {
	observed := newObserved("east")
	observed.IPFamilies = []corev1.IPFamily{"IPv4"}
	for _, kind := range []func(*export.View){func(*export.View) {}, headless} {
		result := Merge(observed, contribute(newView("west", 1, "80/TCP", "fd00::1", families("IPv6"), kind)))
		diff(t, "ready", conditionOf(t, result.ServiceImport.Status.Conditions, "Ready"), metav1.Condition{
			Type: "Ready", Status: metav1.ConditionFalse, Reason: "IPFamilyNotSupported",
			Message: "The service is exported with IPv6, this cluster has IPv4.",
		})
		if len(result.EndpointSlices) != 1 {
			t.Errorf("%d slices", len(result.EndpointSlices))
		}
	}
}

func TestDerivedServiceDefaults(t *testing.T) {
	clientIP := func(v *export.View) { v.Spec.SessionAffinity = corev1.ServiceAffinityClientIP }
	result := Merge(newObserved("east"), contribute(newView("east", 1, "80/TCP", "", clientIP,
		distribution("example.com/unknown"))))
	diff(t, "affinity config", result.DerivedService.Spec.SessionAffinityConfig,
		&corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To[int32](10800)}})
	if got := result.ServiceImport.Spec.SessionAffinityConfig; got != nil {
		t.Errorf("affinity config of the import: %v", got)
	}
	if got := result.DerivedService.Spec.TrafficDistribution; got != nil {
		t.Errorf("the API server would refuse traffic distribution %q", *got)
	}
	diff(t, "traffic distribution of the import", result.ServiceImport.Spec.TrafficDistribution,
		ptr.To("example.com/unknown"))
}

// TestForeign: what this controller did not make stays as it is.
func TestForeign(t *testing.T) {
	views := contribute(newView("east", 1, "80/TCP", "10.1.0.1"), newView("west", 2, "80/TCP", "10.2.0.1"))

	t.Run("import", func(t *testing.T) {
		observed := newObserved("east")
		observed.ServiceImport = &v1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "web"}}
		result := Merge(observed, views)
		if result.ServiceImport != nil || result.DerivedService != nil {
			t.Errorf("result %v", result)
		}
		if len(result.EndpointSlices) != 1 || result.EndpointSlices[0].Labels[export.LabelSourceCluster] != "east" {
			t.Errorf("slices %v", result.EndpointSlices)
		}
		if len(result.ExportConditions) > 0 {
			t.Errorf("conditions %v of an export that another implementation reports on", result.ExportConditions)
		}
	})
	t.Run("Service", func(t *testing.T) {
		observed := newObserved("east")
		observed.DerivedService = &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: derivedName},
			Spec:       corev1.ServiceSpec{ClusterIP: "10.96.0.9", ClusterIPs: []string{"10.96.0.9"}},
		}
		result := Merge(observed, views)
		if result.DerivedService != nil || len(result.ServiceImport.Spec.IPs) > 0 {
			t.Errorf("Service %v, IPs %v", result.DerivedService, result.ServiceImport.Spec.IPs)
		}
		diff(t, "ready", conditionOf(t, result.ServiceImport.Status.Conditions, "Ready"), metav1.Condition{
			Type: "Ready", Status: metav1.ConditionFalse, Reason: "ForeignService",
			Message: "Service demo/" + derivedName +
				" was not made by clusterset-controller.clusterset-dns.github.io. Delete it to have the service imported.",
		})
	})
}
