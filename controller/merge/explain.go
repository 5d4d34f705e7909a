// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// An Account explains how the exports of all clusters were merged into an import.
type Account struct {
	// Precedence are the exporting clusters in their precedence.
	Precedence []string
	// Ranked reports whether the first cluster precedes an older export by its rank.
	Ranked bool
	// Spec is that of the first export with the ports and families of the import.
	Spec *export.Spec
	// Properties are all properties, in the order of the API.
	Properties []Property
	// Conflict is the message of the condition Conflict, empty without conflicts.
	Conflict string
}

// Explain returns the Account of the decision that Merge makes of the same contributions, empty without exports.
func Explain(contributions []Contribution) Account {
	contributions, _ = divide(contributions)
	agreed := decide(contributions)
	if agreed.spec == nil {
		return Account{}
	}
	spec := *agreed.spec
	spec.IPFamilies, spec.Ports = agreed.families, nil
	for _, port := range agreed.ports {
		spec.Ports = append(spec.Ports, export.Port{
			Name: port.Name, Protocol: port.Protocol, Number: port.Port, AppProtocol: ptr.Deref(port.AppProtocol, ""),
		})
	}
	account := Account{
		Ranked: byRank(contributions), Spec: &spec, Properties: agreed.properties, Conflict: agreed.message,
	}
	for _, contribution := range contributions {
		account.Precedence = append(account.Precedence, contribution.View.Cluster)
	}
	return account
}
