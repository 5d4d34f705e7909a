// SPDX-License-Identifier: Apache-2.0

package merge

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// Adopted reports whether a person asked for the ServiceImport of another
// implementation to be taken over, by the annotation export.AnnotationAdopt.
// It stays so afterwards, because the Service behind it may have to wait for
// the other implementation's to free the IP. False for nil.
func Adopted(imported *v1beta1.ServiceImport) bool {
	return imported != nil && imported.DeletionTimestamp == nil &&
		imported.Annotations[export.AnnotationAdopt] == "true"
}

// adopts reports whether an import that this controller did not make becomes
// its own: it was asked to, and there is an export to make it of. Without one
// nothing could be kept of it.
//
// The import keeps its IPs. Where the Service behind it has the name of the
// derived one, as the reference implementation and Cilium call it, that is
// taken over as well; where it has another, the derived Service is created with
// the IPs as soon as the other one is gone.
func adopts(observed Observed, contributions []Contribution) bool {
	return foreign(observed.ServiceImport) && Adopted(observed.ServiceImport) && len(contributions) > 0
}

// adopted is the import as one of this controller's.
func adopted(imported *v1beta1.ServiceImport) *v1beta1.ServiceImport {
	ours := imported.DeepCopy()
	metav1.SetMetaDataLabel(&ours.ObjectMeta, export.LabelManagedBy, export.Manager)
	return ours
}
