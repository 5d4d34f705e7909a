// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// servesHandMade reports whether the import is hand-made and to be served: it has type ClusterSetIP, no cluster exports
// the service, and its annotation asks for it.
func servesHandMade(observed Observed, contributions []Contribution) bool {
	imported := observed.ServiceImport
	return foreign(observed) && !export.IsManaged(imported) && imported.Spec.Type == v1beta1.ClusterSetIP && len(contributions) == 0 &&
		imported.DeletionTimestamp == nil && !observed.Denied && !servedByOtherSet(observed) &&
		imported.Annotations[export.AnnotationServe] == "true"
}

// servedByOtherSet reports whether the controller of another cluster set made the derived Service. That controller still
// retires a hand-made import, whose namespace moved.
func servedByOtherSet(observed Observed) bool {
	derived := observed.DerivedService
	return derived != nil && export.IsManaged(derived) && !observed.Set.Manages(derived)
}

// serveHandMade gives a hand-made import its derived Service and IPs, and its slices the label of that Service. Nothing
// else of them changes.
func serveHandMade(observed Observed, result *Result) {
	imported := observed.ServiceImport.DeepCopy()
	families := importFamilies(observed, imported)
	imported.Spec.IPs = clusterIPs(observed, families)
	if imported.Annotations == nil {
		imported.Annotations = make(map[string]string)
	}
	imported.Annotations[export.AnnotationDerivedService] = export.DerivedServiceName(observed.Service)
	result.ServiceImport = imported
	result.DerivedService = derivedService(observed, imported)
	for _, slice := range observed.HandMadeSlices {
		if labelled := withServiceLabel(observed, slice); labelled != nil {
			result.HandMadeSlices = append(result.HandMadeSlices, labelled)
		}
	}
	slices.SortFunc(result.HandMadeSlices, byName)

	ready := importReady(observed, decision{}, nil, imported)
	ready.Type = string(v1beta1.ServiceImportConditionReady)
	ready.ObservedGeneration = imported.Generation
	imported.Status.Conditions = withObserved(imported.Status.Conditions, []metav1.Condition{ready})
	imported.Status.EndpointSliceObjects = v1beta1.EndpointSliceObjectsAbsent
	if len(observed.HandMadeSlices) > 0 {
		imported.Status.EndpointSliceObjects = v1beta1.EndpointSliceObjectsPresent
	}
}

// reasonNotServed is the reason of the condition Ready of a hand-made import that is no longer served.
const reasonNotServed = "NotServed"

// retireHandMade undoes serveHandMade for an import that is no longer to be served: first it removes the IPs, which may
// soon be another Service's, and the label of its slices; then the annotation. The derived Service is kept until then,
// because it proves that this controller served the import.
func retireHandMade(observed Observed, result *Result) {
	name := export.DerivedServiceName(observed.Service)
	old := observed.ServiceImport
	if old.DeletionTimestamp != nil || old.Annotations[export.AnnotationDerivedService] != name ||
		observed.DerivedService == nil || !observed.Set.Manages(observed.DerivedService) ||
		foreignService(observed) {
		return
	}
	imported := old.DeepCopy()
	if len(old.Spec.IPs) == 0 && !meta.IsStatusConditionTrue(old.Status.Conditions,
		string(v1beta1.ServiceImportConditionReady)) {
		delete(imported.Annotations, export.AnnotationDerivedService)
	}
	imported.Spec.IPs = nil
	ready := meta.FindStatusCondition(old.Status.Conditions, string(v1beta1.ServiceImportConditionReady))
	if ready == nil || ready.Reason != reasonNotServed {
		imported.Status.Conditions = withObserved(old.Status.Conditions, []metav1.Condition{{
			Type: string(v1beta1.ServiceImportConditionReady), Status: metav1.ConditionFalse, Reason: reasonNotServed,
			Message:            "The import is not served: its annotation " + export.AnnotationServe + " is not \"true\".",
			ObservedGeneration: old.Generation,
		}})
	}
	result.ServiceImport = imported
	result.DerivedService = observed.DerivedService.DeepCopy()
	for _, slice := range observed.HandMadeSlices {
		if slice.Labels[export.LabelKubernetesService] == name {
			unlabelled := slice.DeepCopy()
			delete(unlabelled.Labels, export.LabelKubernetesService)
			result.HandMadeSlices = append(result.HandMadeSlices, unlabelled)
		}
	}
	slices.SortFunc(result.HandMadeSlices, byName)
}

// withServiceLabel returns the slice with the label of the derived Service. It is nil if the slice already belongs to a
// Service, belongs to another import, or if the name of the derived Service is taken.
func withServiceLabel(observed Observed, slice *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	if foreignService(observed) {
		return nil
	}
	if slice.Labels[export.LabelService] != observed.Service.Name ||
		slice.Labels[export.LabelKubernetesService] != "" || export.IsManaged(slice) {
		return nil
	}
	labelled := slice.DeepCopy()
	labelled.Labels[export.LabelKubernetesService] = export.DerivedServiceName(observed.Service)
	return labelled
}
