// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// An Account explains how the exports of all clusters were merged into an import.
type Account struct {
	// Precedence are the exporting clusters in their precedence.
	Precedence []string
	// Ranked reports whether the first cluster precedes an older export by its rank.
	Ranked bool
	// Properties are the properties that exports can disagree on, in the order of the API.
	Properties []Property
	// Conflict is the message of the condition Conflict, empty without conflicts.
	Conflict string
}

// A Property is a property of the import. Values have the form of condition messages.
type Property struct {
	// Field is its name in the API.
	Field string
	// Value is the value of the import, empty if it has none.
	Value string
	// Reason is the reason of the condition Conflict if exports disagree.
	Reason v1beta1.ServiceExportConditionReason
	// Dissent are the differing values of clusters, in their precedence.
	Dissent []Dissent
}

// A Dissent is a value of an export that the import does not have.
type Dissent struct {
	Cluster string
	Value   string
}

// Explain returns the Account of the decision that Merge makes of the same contributions, empty without exports.
func Explain(contributions []Contribution) Account {
	contributions, _ = divide(contributions)
	agreed := decide(contributions)
	if agreed.spec == nil {
		return Account{}
	}
	account := Account{Ranked: byRank(contributions)}
	if len(agreed.conflicts) > 0 {
		_, _, account.Conflict = conflictCondition(agreed.conflicts)
	}
	add := func(field, value string, reason v1beta1.ServiceExportConditionReason, text func(*export.Spec) string,
		disagrees func(*export.Spec) bool,
	) {
		property := Property{Field: field, Value: value, Reason: reason}
		for _, contribution := range contributions {
			if spec := contribution.View.Spec; disagrees(spec) {
				property.Dissent = append(property.Dissent,
					Dissent{Cluster: contribution.View.Cluster, Value: text(spec)})
			}
		}
		account.Properties = append(account.Properties, property)
	}
	for _, contribution := range contributions {
		account.Precedence = append(account.Precedence, contribution.View.Cluster)
	}
	for _, p := range properties {
		add(p.field, p.text(agreed.spec), p.reason, p.text,
			func(s *export.Spec) bool { return !p.equal(s, agreed.spec) })
	}
	first := setOf(agreed.spec.Ports)
	add("ports", importPortsText(agreed.ports), v1beta1.ServiceExportReasonPortConflict,
		func(s *export.Spec) string { return portsText(s.Ports) },
		func(s *export.Spec) bool { return !first.equal(s.Ports) })
	add("ipFamilies", familiesText(agreed.families), v1beta1.ServiceExportReasonIPFamilyConflict,
		func(s *export.Spec) string { return familiesText(s.IPFamilies) },
		func(s *export.Spec) bool { return outOfReach(agreed.spec.Type, s.IPFamilies, agreed.families) })
	return account
}

func importPortsText(ports []v1beta1.ServicePort) string {
	exported := make([]export.Port, 0, len(ports))
	for _, port := range ports {
		appProtocol := ""
		if port.AppProtocol != nil {
			appProtocol = *port.AppProtocol
		}
		exported = append(exported, export.Port{
			Name: port.Name, Protocol: port.Protocol, Number: port.Port,
			AppProtocol: appProtocol,
		})
	}
	return portsText(exported)
}
