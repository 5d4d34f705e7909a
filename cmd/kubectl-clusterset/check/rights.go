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
	{Name: "member-rights", About: "the credential of members may do what it has to", run: func(_ *Set, c *Cluster) []problem {
		return lacks(c, "service account "+manifest.MemberAccount, c.MemberLacks)
	}},
	{Name: "member-least", About: "the credential of members may do nothing else", run: func(_ *Set, c *Cluster) (found []problem) {
		for _, binding := range c.Bindings {
			remove := c.kubectl("delete %s %s", binding.Kind, binding.Name)
			if binding.Namespace != "" {
				remove = c.kubectl("-n %s delete %s %s", binding.Namespace, binding.Kind, binding.Name)
			}
			found = append(found, wrong(remove, "The %s %s gives service account %s more than members need.", binding.Kind, binding.Name, manifest.MemberAccount))
		}
		if len(found) == 0 && len(c.MemberHas) > 0 {
			found = append(found, wrong(c.apply(manifest.Rights), "Members may do more than they need here: %s.", rightsText(c.MemberHas)))
		}
		return found
	}},
}

func lacks(c *Cluster, who string, rights []manifest.Right) []problem {
	if len(rights) == 0 {
		return nil
	}
	return []problem{wrong(c.apply(manifest.Rights), "%s may not %s.", strings.ToUpper(who[:1])+who[1:], rightsText(rights))}
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
