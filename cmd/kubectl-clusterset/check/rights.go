// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strings"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/manifest"
)

var rightsChecks = []Check{
	{
		Name: "controller-rights", About: "the controller has the permissions it needs",
		run: func(_ *Set, c *Cluster) []problem {
			return lacks(c, "service account "+controllerAccount, c.ControllerLacks)
		},
	},
	{
		Name: "member-rights", About: "credentials of members have the permissions they need",
		run: func(_ *Set, c *Cluster) []problem {
			return lacks(c, "service account "+manifest.MemberAccount, c.MemberLacks)
		},
	},
	{
		Name: "member-least", About: "credentials of members have no other permissions",
		run: func(_ *Set, c *Cluster) (found []problem) {
			for _, binding := range c.Bindings {
				found = append(found, wrong(c.unbind(binding),
					"The %s %s grants service account %s more than members need.",
					binding.Kind, binding.Name, manifest.MemberAccount))
			}
			if len(c.RolesGive) > 0 {
				found = append(found, wrong(c.grantRights(),
					"The roles %s were changed and grant members more than they need: %s.", manifest.MemberAccount,
					rightsText(c.RolesGive)))
			}
			if len(found) > 0 || len(c.MemberHas) == 0 {
				return found
			}
			for _, binding := range c.Groups {
				found = append(found, wrong(c.unbind(binding),
					"Members have more permissions than they need: %s. The %s %s may grant them to group %s.",
					rightsText(c.MemberHas), binding.Kind, binding.Name, binding.Group))
			}
			if len(found) == 0 {
				found = append(found, wrong("Find the binding that grants these permissions, and delete it.",
					"Members have more permissions than they need: %s.", rightsText(c.MemberHas)))
			}
			return found
		},
	},
}

// unbind is the instruction to inspect and delete a binding.
func (c *Cluster) unbind(binding Binding) string {
	object := binding.Kind + " " + binding.Name
	if binding.Namespace != "" {
		object += " -n " + binding.Namespace
	}
	return "See what it grants: `" + c.kubectl("describe %s", object) + "`. If it is not needed, delete it: `" +
		c.kubectl("delete %s", object) + "`."
}

func lacks(c *Cluster, who string, rights []manifest.Right) []problem {
	if len(rights) == 0 {
		return nil
	}
	return []problem{wrong(c.grantRights(), "%s lacks permissions: %s.", strings.ToUpper(who[:1])+who[1:],
		rightsText(rights))}
}

// maxRights bounds the rights in a message.
const maxRights = 3

func rightsText(rights []manifest.Right) string {
	var texts []string
	for i, right := range rights {
		if i == maxRights {
			texts = append(texts, "…")
			break
		}
		texts = append(texts, manifest.RightText(right))
	}
	return strings.Join(texts, ", ")
}
