// SPDX-License-Identifier: Apache-2.0

package kubectl

var rightsFaults = []fault{
	{
		name: "the controller may nothing", round: "rights", says: []string{"controller-rights west"},
		also: []string{
			"controller west", "member-reachable east", "member-reachable north", "member-fresh east",
			"member-fresh north",
		},
		shell: "kubectl --context west delete clusterrolebinding clusterset-controller",
	},
	{
		name: "members may nothing", round: "losses", says: []string{"member-rights north"},
		also:  []string{"member-reachable east", "member-reachable west", "member-fresh east", "member-fresh west"},
		shell: "kubectl --context north delete clusterrole clusterset-member",
	},
	{
		name: "members may more by a binding", round: cut, says: []string{"member-least west"},
		shell: "kubectl --context west create clusterrolebinding more --clusterrole=view --serviceaccount=clusterset-dns:clusterset-member",
		which: " delete ",
	},
	{
		name: "members may more by a group", round: "rights", says: []string{"member-least north"},
		shell: "kubectl --context north create clusterrolebinding more --clusterrole=view --group=system:serviceaccounts:clusterset-dns",
		which: " delete ",
	},
	{
		name: "members may more by their own role", round: "losses", says: []string{"member-least west"},
		shell: `kubectl --context west patch clusterrole clusterset-member --type json -p '[{"op":"add","path":"/rules/-","value":{"apiGroups":[""],"resources":["pods"],"verbs":["list"]}}]'`,
	},
}
