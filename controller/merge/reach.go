// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// ConditionReach is the type of the condition of a ServiceExport that tells which members it reaches. It exists only if
// clusters are chosen or refuse the export.
const ConditionReach = export.Domain + "/Reach"

// Reasons of ConditionReach.
const (
	ReasonChosenClusters = "ChosenClusters"
	ReasonRefused        = "Refused"
	ReasonNoCluster      = "NoCluster"
)

// Reach is which members an export of the local cluster reaches.
type Reach struct {
	Status          metav1.ConditionStatus
	Reason, Message string
}

// WithoutReach returns the conditions without ConditionReach, in a new list.
func WithoutReach(conditions []metav1.Condition) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c metav1.Condition) bool { return c.Type == ConditionReach })
}
