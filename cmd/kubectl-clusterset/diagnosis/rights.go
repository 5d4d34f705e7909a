// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// memberAccount is the service account of the chart for members, and begins the names of those of join, one for each reader.
const memberAccount = "clusterset-member"

// maxReviewed bounds the accounts that are reviewed. All have the same rights, unless someone bound a role to one of them.
const maxReviewed = 10

// dangerous are verbs of resources that the credential of a member must not have: to write, to read more than endpoints and the
// heartbeat, and to get other credentials.
var dangerous = [][2]string{
	{"list create update delete", "secrets services pods nodes namespaces configmaps leases.coordination.k8s.io"},
	{"list create update delete", "serviceimports.multicluster.x-k8s.io serviceexports.multicluster.x-k8s.io"},
	{"get", "secrets"},
	{"create", "pods/exec serviceaccounts/token clusterrolebindings.rbac.authorization.k8s.io"},
	{"create update patch delete", "endpointslices.discovery.k8s.io"},
	{"*", "*.*"},
}

// memberLeast does not look for missing rights: join and the controller name rights that members lack, and a controller without
// its own rights stops its heartbeat.
var memberLeast = Check{
	Name: "member-least", About: "credentials of members have no more permissions than they need",
	run: func(_ *Set, c *Cluster, found *problems) {
		if c.RightsError != nil {
			found.skip("Not all permissions of members could be reviewed: %v.", c.RightsError)
		}
		if has := c.MemberHas; len(has) > 0 {
			found.fail("Find the binding or the role that grants them, and delete or correct it: `"+
				c.kubectl("get clusterrolebindings,rolebindings -A -o wide | grep -E '%s[/:]%s|system:(serviceaccounts|authenticated)'",
					c.Namespace, memberAccount)+"`.",
				"Members have more permissions than they need, such as: %s.", strings.Join(has[:min(len(has), 3)], ", "))
		}
	},
}

// reviewMembers returns which dangerous rights some member has, as text, such as "list services in namespace a". An error is why
// there may be more.
func (c *Cluster) reviewMembers(ctx context.Context) (has []string, err error) {
	list, err := c.Kube.CoreV1().ServiceAccounts(c.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var accounts []string
	for i := range list.Items {
		if name := list.Items[i].Name; strings.HasPrefix(name, memberAccount) {
			accounts = append(accounts, name)
		}
	}
	if all := len(accounts); all == 0 || all > maxReviewed {
		accounts = accounts[:min(all, maxReviewed)]
		err = fmt.Errorf("only %d of %d ServiceAccounts %s… in namespace %s", len(accounts), all, memberAccount, c.Namespace)
	}
	var rights []string
	for _, each := range dangerous {
		for _, name := range strings.Fields(each[1]) {
			for _, verb := range strings.Fields(each[0]) {
				rights = append(rights, verb+" "+name)
			}
		}
	}
	has = make([]string, len(rights))
	var group errgroup.Group
	for i, right := range rights {
		group.Go(func() error {
			asked := authorizationv1.ResourceAttributes{Namespace: c.Namespace}
			asked.Verb, asked.Resource, _ = strings.Cut(right, " ")
			asked.Resource, asked.Group, _ = strings.Cut(asked.Resource, ".")
			asked.Resource, asked.Subresource, _ = strings.Cut(asked.Resource, "/")
			for _, account := range accounts {
				answer, err := c.Kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
					Spec: authorizationv1.SubjectAccessReviewSpec{
						User:               "system:serviceaccount:" + c.Namespace + ":" + account,
						Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + c.Namespace, "system:authenticated"},
						ResourceAttributes: &asked,
					},
				}, metav1.CreateOptions{})
				if err != nil {
					return err
				}
				if answer.Status.Allowed {
					has[i] = right + " in namespace " + c.Namespace
					break
				}
			}
			return nil
		})
	}
	err = errors.Join(err, group.Wait())
	return slices.DeleteFunc(has, func(text string) bool { return text == "" }), err
}
