// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/setup"
	"github.com/clusterset-dns/clusterset-dns/deploy"
)

// memberAccount is the service account of members. As that of the controller, it has the name of its roles in deploy.Rights.
const memberAccount = "clusterset-member"

// A right allows one verb on one resource.
type right = authorizationv1.ResourceAttributes

// dangerous are rights that the credential of a member must not have: to write, to read more than endpoints and the
// heartbeat, and to get other credentials.
var dangerous = []rbacv1.PolicyRule{
	rule("", "secrets services pods nodes namespaces configmaps", "list create update delete"),
	rule("", "secrets", "get"),
	rule("", "pods/exec serviceaccounts/token", "create"),
	rule("discovery.k8s.io", "endpointslices", "create update patch delete"),
	rule("coordination.k8s.io", "leases", "list create update delete"),
	rule("multicluster.x-k8s.io", "serviceimports serviceexports", "list create update delete"),
	rule("rbac.authorization.k8s.io", "clusterrolebindings", "create"),
	rule("*", "*", "*"),
}

func rule(group, resources, verbs string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: strings.Fields(resources), Verbs: strings.Fields(verbs)}
}

var rightsChecks = []Check{
	{
		Name: "controller-rights", About: "the controller has the permissions it needs", skip: unreviewed,
		run: func(_ *Set, c *Cluster, found *problems) { c.lacks(setup.ControllerName, c.ControllerLacks, found) },
	},
	{
		Name: "member-rights", About: "credentials of members have the permissions they need", skip: unreviewed,
		run: func(_ *Set, c *Cluster, found *problems) { c.lacks(memberAccount, c.MemberLacks, found) },
	},
	{
		Name: "member-least", About: "credentials of members have no other permissions", skip: unreviewed,
		run: func(_ *Set, c *Cluster, found *problems) {
			if len(c.MemberHas) > 0 {
				found.fail("Find the binding or the role that grants them, and delete or correct it: `"+
					c.kubectl("get clusterrolebindings,rolebindings -A -o wide | grep -E '%s[/:]%s|system:(serviceaccounts|authenticated)'",
						c.Namespace, memberAccount)+"`.",
					"Members have more permissions than they need: %s.", few(c.MemberHas))
			}
		},
	},
}

func unreviewed(_ *Set, c *Cluster) string {
	if c.RightsError != nil {
		return fmt.Sprintf("The permissions of service accounts could not be reviewed: %v.", c.RightsError)
	}
	return ""
}

func (c *Cluster) lacks(account string, rights []string, found *problems) {
	if len(rights) > 0 {
		found.fail(c.chart("upgrade", "--reset-then-reuse-values"), "Service account %s lacks permissions: %s.", account, few(rights))
	}
}

// reviewAccounts reviews the rights of the service accounts.
func (c *Cluster) reviewAccounts(ctx context.Context) (err error) {
	c.ControllerLacks, err = c.review(ctx, setup.ControllerName, shipped(setup.ControllerName, c.Namespace), false)
	if err == nil {
		c.MemberLacks, err = c.review(ctx, memberAccount, shipped(memberAccount, c.Namespace), false)
	}
	if err == nil {
		c.MemberHas, err = c.review(ctx, memberAccount, expand(dangerous, c.Namespace), true)
	}
	return err
}

// review returns which of the rights a service account has, or does not have.
func (c *Cluster) review(ctx context.Context, account string, rights []right, has bool) (found []string, err error) {
	allowed := make([]bool, len(rights))
	var group errgroup.Group
	for i := range rights {
		group.Go(func() error {
			answer, err := c.Kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
				Spec: authorizationv1.SubjectAccessReviewSpec{
					User:               "system:serviceaccount:" + c.Namespace + ":" + account,
					Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + c.Namespace, "system:authenticated"},
					ResourceAttributes: &rights[i],
				},
			}, metav1.CreateOptions{})
			allowed[i] = err == nil && answer.Status.Allowed
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i := range rights {
		if allowed[i] == has {
			found = append(found, text(rights[i]))
		}
	}
	return found, nil
}

// shipped are the rights that the roles of a name in deploy.Rights give.
func shipped(name, namespace string) (rights []right) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(deploy.Rights), 4096)
	for {
		var role rbacv1.ClusterRole // has all that a Role has
		switch err := decoder.Decode(&role); {
		case err != nil: // the end: a test reads all roles
			return rights
		case role.Name != name:
		case role.Kind == "ClusterRole":
			rights = append(rights, expand(role.Rules, "")...)
		case role.Kind == "Role":
			rights = append(rights, expand(role.Rules, namespace)...)
		}
	}
}

// expand gives one right for each verb of each resource of rules, in a namespace, or in all if that is empty.
func expand(rules []rbacv1.PolicyRule, namespace string) (rights []right) {
	for _, each := range rules {
		names := each.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range each.APIGroups {
			for _, text := range each.Resources {
				resource, subresource, _ := strings.Cut(text, "/")
				for _, verb := range each.Verbs {
					for _, name := range names {
						rights = append(rights, right{
							Group: group, Resource: resource, Subresource: subresource, Verb: verb, Namespace: namespace, Name: name,
						})
					}
				}
			}
		}
	}
	return rights
}

// text is a right as text, such as "list services in namespace a".
func text(r right) string {
	text := r.Verb + " " + r.Resource
	for _, part := range [][2]string{{"/", r.Subresource}, {".", r.Group}, {" ", r.Name}, {" in namespace ", r.Namespace}} {
		if part[1] != "" {
			text += part[0] + part[1]
		}
	}
	return text
}

// few is a list of rights as text, of which three are enough.
func few(rights []string) string {
	if len(rights) > 3 {
		rights = append(slices.Clone(rights[:3]), "…")
	}
	return strings.Join(rights, ", ")
}
