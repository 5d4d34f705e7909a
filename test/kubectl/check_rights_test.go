// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"strings"
	"testing"
)

var rightsFaults = []fault{
	{
		name: "the controller may nothing", round: "rights", says: []string{"controller-rights west"},
		also: []string{
			"controller west", "member-reachable east", "member-reachable north", "member-fresh east",
			"member-fresh north",
		},
		shell: "kubectl --context west delete clusterrolebinding clusterset-controller",
		hand:  map[string]func(*testing.T, *bed){"helm upgrade": func(t *testing.T, b *bed) { b.grant(t, "west") }},
	},
	{
		name: "members may nothing", round: "losses", says: []string{"member-rights north"},
		also:  []string{"member-reachable east", "member-reachable west", "member-fresh east", "member-fresh west"},
		shell: "kubectl --context north delete clusterrole clusterset-member",
		hand:  map[string]func(*testing.T, *bed){"helm upgrade": func(t *testing.T, b *bed) { b.grant(t, "north") }},
	},
	{
		name: "members may more by a binding", round: cut, says: []string{"member-least west"},
		shell: "kubectl --context west create clusterrolebinding more --clusterrole=view --serviceaccount=clusterset-dns:clusterset-member",
		hand:  unbind("west"),
	},
	{
		name: "members may more by a group", round: "rights", says: []string{"member-least north"},
		shell: "kubectl --context north create clusterrolebinding more --clusterrole=view --group=system:serviceaccounts:clusterset-dns",
		hand:  unbind("north"),
	},
	{
		name: "members may more by their own role", round: "losses", says: []string{"member-least west"},
		shell: `kubectl --context west patch clusterrole clusterset-member --type json -p '[{"op":"add","path":"/rules/-","value":{"apiGroups":[""],"resources":["pods"],"verbs":["list"]}}]'`,
		hand:  map[string]func(*testing.T, *bed){"grep -E": func(t *testing.T, b *bed) { b.grant(t, "west") }},
	},
}

// unbind finds the binding "more" as a hint says, and deletes it.
func unbind(context string) map[string]func(*testing.T, *bed) {
	return map[string]func(*testing.T, *bed){"grep -E": func(t *testing.T, b *bed) {
		found := b.shell(t, "kubectl --context "+context+" get clusterrolebindings,rolebindings -A -o wide | "+
			"grep -E 'clusterset-dns[/:]clusterset-member|system:(serviceaccounts|authenticated)'")
		if !strings.Contains(found, "clusterrolebinding.rbac.authorization.k8s.io/more ") {
			t.Errorf("the hint does not find it:\n%s", found)
		}
		b.shell(t, "kubectl --context "+context+" delete clusterrolebinding more")
	}}
}
