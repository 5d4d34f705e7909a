// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// An Account says, for people, how the exports of all clusters come to one
// import. It is made of the same rules as the import.
type Account struct {
	// Precedence are the exporting clusters, the one whose word wins first.
	Precedence []string
	// Ranked tells that the first of them is first by its rank: another export
	// is older.
	Ranked bool
	// Properties are all that exports can disagree on, in the order of the API.
	Properties []Property
	// Conflict is the message of the condition Conflict, empty where the exports
	// agree.
	Conflict string
}

// A Property is one part of the import. Values are in the form that the
// messages of conditions have.
type Property struct {
	// Field is its name in the API.
	Field string
	// Value is what is used, empty where the import has none.
	Value string
	// Reason is that of the condition Conflict where exports disagree.
	Reason v1beta1.ServiceExportConditionReason
	// Dissent is what other clusters say, in their precedence; empty where all
	// agree.
	Dissent []Dissent
}

// A Dissent is a value that is not used as it is.
type Dissent struct {
	Cluster string
	Value   string
}

// Explain accounts for what Merge decides of the same contributions. The
// Account is empty where there is none.
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
