// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

var derivedName = export.DerivedServiceName(web)

func TestServiceImport(t *testing.T) {
	observed := newObserved("east")
	observed.APIVersion = "multicluster.x-k8s.io/v1alpha1"
	first := Merge(observed, contribute(exportsOf("cluster=west http:80/TCP timeout=6 local distribution=PreferClose "+
		"labels=team=red annotations=note=x families=46; cluster=east http:80/TCP labels=team=blue families=46")...))
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
				ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To[int32](6)},
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
	diff(t, "Service of the slices", first.EndpointSlices[0].Labels[export.LabelKubernetesService], derivedName)
	headless := Merge(newObserved("east"), contribute(exportsOf("cluster=west http:80/TCP headless")...)).EndpointSlices[0].Labels
	if _, ignored := headless[export.LabelHeadless]; !ignored {
		t.Errorf("slices of a headless import have the labels %v", headless)
	}
	wantService := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "demo", Name: derivedName,
			Labels: map[string]string{export.LabelManagedBy: export.Manager, export.LabelService: "web"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "multicluster.x-k8s.io/v1alpha1", Kind: "ServiceImport", Name: "web", Controller: ptr.To(true),
			}},
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
				ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To[int32](6)},
			},
			InternalTrafficPolicy: ptr.To(corev1.ServiceInternalTrafficPolicyLocal),
			TrafficDistribution:   ptr.To("PreferClose"),
		},
	}
	diff(t, "new derived Service", first.DerivedService, wantService)
}

// TestImportMetadata: exported metadata is removed with the exports. Metadata of other writers on an import and its
// Service stays, except keys that only exports may set.
func TestImportMetadata(t *testing.T) {
	before := exportsOf("cluster=east 80/TCP labels=team=red annotations=" + export.AnnotationPrefer + "=cluster")
	observed, _ := settled(t, newObserved("east"), contribute(before...))
	observed.ServiceImport.Labels["app.kubernetes.io/part-of"] = "shop"
	observed.ServiceImport.Labels["argocd.argoproj.io/instance"] = "shop"
	observed.ServiceImport.Annotations["kubectl.kubernetes.io/note"] = "kept"
	observed.ServiceImport.Annotations["example.com/owner"] = "red"
	observed.ServiceImport.Annotations[export.AnnotationAllowedClusters] = "local"
	observed.ServiceImport.Finalizers = []string{"example.com/wait"}
	observed.DerivedService.Annotations = map[string]string{"example.com/mesh": "on"}

	result := Merge(observed, contribute(exportsOf("cluster=east 80/TCP labels=tier=front")...))
	diff(t, "labels", result.ServiceImport.Labels, map[string]string{
		"tier": "front", "app.kubernetes.io/part-of": "shop", "argocd.argoproj.io/instance": "shop",
		export.LabelManagedBy: export.Manager,
	})
	diff(t, "annotations", result.ServiceImport.Annotations, map[string]string{
		"kubectl.kubernetes.io/note": "kept", "example.com/owner": "red", export.AnnotationDerivedService: derivedName,
		export.AnnotationExported: `{"labels":["tier"]}`,
	})
	bare := Merge(observed, contribute(exportsOf("cluster=east 80/TCP")...)).ServiceImport
	if keys, found := bare.Annotations[export.AnnotationExported]; found {
		t.Errorf("nothing is exported, and %s would go though others set it", keys)
	}
	diff(t, "finalizers", result.ServiceImport.Finalizers, []string{"example.com/wait"})
	diff(t, "labels of the derived Service", result.DerivedService.Labels, map[string]string{
		export.LabelManagedBy: export.Manager, export.LabelService: "web",
	})
	diff(t, "annotations of the derived Service", result.DerivedService.Annotations,
		map[string]string{"example.com/mesh": "on"})
}

// familiesOf reads "46" or the like.
func familiesOf(text string) (all []corev1.IPFamily) {
	for _, digit := range text {
		all = append(all, corev1.IPFamily("IPv"+string(digit)))
	}
	return all
}

// TestIPFamilies: families and IPs of the import and of its derived Service.
func TestIPFamilies(t *testing.T) {
	for name, test := range map[string]struct {
		exports, cluster string // families of each export, and of the local cluster
		derived, old     string // IPs of the existing Service and import
		want             string // families
		ips              string
		ready            string
		renew            bool // the Service must be made anew
	}{
		"order of the derived Service":          {"64", "46", "10.0.0.1 fd00::1", "", "46", "10.0.0.1 fd00::1", "Ready", false},
		"order of the IPs, the Service is gone": {"64", "46", "", "10.0.0.1 fd00::1", "46", "10.0.0.1 fd00::1", "Pending", false},
		"the Service decides over the import":   {"4", "4", "10.0.0.2", "10.0.0.1", "4", "10.0.0.2", "Ready", false},
		"intersection":                          {"46 6", "46", "", "", "6", "", "Pending", false},
		"no intersection, the oldest's":         {"4 6", "46", "", "", "4", "", "Pending", false},
		"the cluster has none of them":          {"6", "4", "", "", "", "", "IPFamilyNotSupported", false},
		"a second one comes":                    {"46", "46", "10.0.0.1", "", "46", "10.0.0.1", "Pending", false},
		"the second one goes":                   {"4", "46", "10.0.0.1 fd00::1", "", "4", "10.0.0.1", "Ready", false},
		"the first one goes":                    {"6", "46", "10.0.0.1 fd00::1", "", "6", "fd00::1", "Ready", true},
		"another Service got the IP":            {"4", "4", "", "192.0.2.1", "4", "", "Pending", false},
	} {
		t.Run(name, func(t *testing.T) {
			exports := ""
			for each := range strings.FieldsSeq(test.exports) {
				exports += "80/TCP families=" + each + ";"
			}
			observed := newObserved("cluster-1")
			observed.IPFamilies, observed.TakenIPs = familiesOf(test.cluster), []string{"192.0.2.1"}
			managed := metav1.ObjectMeta{Namespace: observed.Service.Namespace, Labels: map[string]string{
				export.LabelManagedBy: export.Manager, export.LabelService: observed.Service.Name,
			}}
			if derived := strings.Fields(test.derived); len(derived) > 0 {
				observed.DerivedService = &corev1.Service{
					ObjectMeta: managed, Spec: corev1.ServiceSpec{ClusterIP: derived[0], ClusterIPs: derived},
				}
				for _, ip := range derived {
					observed.DerivedService.Spec.IPFamilies = append(observed.DerivedService.Spec.IPFamilies, export.FamilyOf(ip))
				}
			}
			if test.old != "" {
				observed.ServiceImport = &v1beta1.ServiceImport{
					ObjectMeta: managed, Spec: v1beta1.ServiceImportSpec{IPs: strings.Fields(test.old)},
				}
			}
			result := Merge(observed, contribute(exportsOf(exports)...))
			diff(t, "families", result.ServiceImport.Spec.IPFamilies, familiesOf(test.want))
			diff(t, "IPs", strings.Join(result.ServiceImport.Spec.IPs, " "), test.ips)
			diff(t, "ready", conditionOf(result.ServiceImport.Status.Conditions, "Ready").Reason, test.ready)
			diff(t, "derived Service", result.DerivedService != nil, test.want != "")
			if result.DerivedService == nil {
				return
			}
			spec := result.DerivedService.Spec
			diff(t, "families of the Service", spec.IPFamilies, familiesOf(test.want))
			diff(t, "IPs of the Service", strings.Join(spec.ClusterIPs, " "), test.ips)
			diff(t, "first IP of the Service", spec.ClusterIP, strings.Split(test.ips, " ")[0])
			if observed.DerivedService != nil {
				diff(t, "recreation", NeedsRecreation(observed.DerivedService, result.DerivedService), test.renew)
			}
		})
	}
}

func TestUnknownDistribution(t *testing.T) {
	result := Merge(newObserved("east"), contribute(exportsOf("cluster=east 80/TCP distribution=example.com/unknown")...))
	if got := result.DerivedService.Spec.TrafficDistribution; got != nil {
		t.Errorf("the API server would refuse traffic distribution %q", *got)
	}
	diff(t, "traffic distribution of the import", result.ServiceImport.Spec.TrafficDistribution,
		ptr.To("example.com/unknown"))
}
