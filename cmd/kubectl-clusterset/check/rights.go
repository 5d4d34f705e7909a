// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strings"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/manifest"
)

var rightsChecks = []Check{
	{Name: "controller-rights", About: "the controller may do what it has to", run: func(_ *Set, c *Cluster) []problem {
		return lacks(c, "service account "+controllerAccount, c.ControllerLacks)
	}},
	{
		Name: "member-rights", About: "the credential of members may do what it has to",
		run: func(_ *Set, c *Cluster) []problem {
			return lacks(c, "service account "+manifest.MemberAccount, c.MemberLacks)
		},
	},
	{
		Name: "member-least", About: "the credential of members may do nothing else",
		run: func(_ *Set, c *Cluster) (found []problem) {
			for _, binding := range c.Bindings {
				found = append(found, wrong(c.unbind(binding),
					"The %s %s gives service account %s more than members need.",
					binding.Kind, binding.Name, manifest.MemberAccount))
			}
			if len(c.RolesGive) > 0 {
				found = append(found, wrong(c.apply(manifest.Rights),
					"The roles %s were changed, and give members more than they need: %s.", manifest.MemberAccount,
					rightsText(c.RolesGive)))
			}
			if len(found) > 0 || len(c.MemberHas) == 0 {
				return found
			}
			for _, binding := range c.Groups {
				found = append(found, wrong(c.unbind(binding),
					"Members may do more than they need here: %s. It may be the %s %s that gives it to them, with all of group %s.",
					rightsText(c.MemberHas), binding.Kind, binding.Name, binding.Group))
			}
			if len(found) == 0 {
				found = append(found, wrong("Find out where these rights come from, and take them away.",
					"Members may do more than they need here: %s.", rightsText(c.MemberHas)))
			}
			return found
		},
	},
}

// unbind has commands that show what a binding gives, and take it back.
func (c *Cluster) unbind(binding Binding) string {
	object := binding.Kind + " " + binding.Name
	if binding.Namespace != "" {
		object += " -n " + binding.Namespace
	}
	return "See what it is for: `" + c.kubectl("describe %s", object) + "`. If it is not wanted: `" +
		c.kubectl("delete %s", object) + "`."
}

func lacks(c *Cluster, who string, rights []manifest.Right) []problem {
	if len(rights) == 0 {
		return nil
	}
	return []problem{wrong(c.apply(manifest.Rights), "%s may not %s.", strings.ToUpper(who[:1])+who[1:],
		rightsText(rights))}
}

// maxRights bounds what a sentence lists.
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
