// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// Adopted reports whether the annotation export.AnnotationAdopt asks this controller to adopt a ServiceImport of another
// implementation. It remains true after the adoption, because the derived Service may have to wait until the other
// implementation's Service frees the IP. It is false for nil.
func Adopted(imported *v1beta1.ServiceImport) bool {
	return imported != nil && imported.DeletionTimestamp == nil &&
		imported.Annotations[export.AnnotationAdopt] == "true"
}

// adopts reports whether a foreign import becomes this controller's: it is marked for adoption, and the service is
// exported.
//
// The import keeps its IPs. If its Service has the name of the derived one, as with the reference implementation and
// Cilium, the Service is adopted, too. Otherwise the derived Service is created with the IPs once the other Service is
// deleted.
func adopts(observed Observed, contributions []Contribution) bool {
	return foreign(observed) && Adopted(observed.ServiceImport) && len(contributions) > 0
}
