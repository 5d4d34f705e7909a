// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
)

// A call as text: the verb, the resource with its group and subresource, and
// where: a namespace, a namespace and a name, a name alone (/name), or nothing,
// which is all namespaces.
//
//	get coordination.k8s.io/leases clusterset-dns/clusterset-dns-heartbeat
//	update multicluster.x-k8s.io/serviceimports:status
type call string

func (c call) attributes(t testing.TB) *authorizationv1.ResourceAttributes {
	t.Helper()
	fields := strings.Fields(string(c))
	if len(fields) < 2 || len(fields) > 3 {
		t.Fatalf("call %q: want a verb, a resource and maybe a place", c)
	}
	attributes := &authorizationv1.ResourceAttributes{Verb: fields[0], Resource: fields[1]}
	if group, resource, ok := strings.Cut(fields[1], "/"); ok {
		attributes.Group, attributes.Resource = group, resource
	}
	attributes.Resource, attributes.Subresource, _ = strings.Cut(attributes.Resource, ":")
	if len(fields) == 3 {
		attributes.Namespace, attributes.Name, _ = strings.Cut(fields[2], "/")
	}
	return attributes
}

// allowed asks the API server whether a user may make a call.
func allowed(ctx context.Context, t testing.TB, cluster *controlplane.Cluster, who user, c call) (bool, error) {
	t.Helper()
	review, err := cluster.Client().AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: who.name, Groups: who.groups, ResourceAttributes: c.attributes(t)},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

const heartbeat = "clusterset-dns/clusterset-dns-heartbeat"

// TestRights asks the API server about each role from both sides: what administrators
// do is allowed, and what would be dangerous is not. What the programs may is
// proved by the audit logs of those that run, here and in test/controller.
// Verbs of one line that are separated by commas are one call each.
func TestRights(t *testing.T) {
	cluster := installed(t)
	viewer, reader, editor, owner := user{name: "viewer"}, user{name: "reader"}, user{name: "editor"}, user{name: "owner"}
	team := namespaceOf(t, cluster, "team-")
	grant(t, cluster, "", "clusterset-viewer", viewer)
	grant(t, cluster, team, "view", reader)
	grant(t, cluster, team, "edit", editor)
	grant(t, cluster, team, "admin", owner)
	for _, role := range []struct {
		who          user
		may, mustNot string
	}{
		{
			who: account(system, "clusterset-controller"),
			mustNot: `
				get,list,watch secrets
				get,list,watch secrets kube-system
				get,create,update,patch,delete,deletecollection secrets clusterset-dns
				create,update,patch,delete multicluster.x-k8s.io/serviceexports
				get,list,watch,create,update,patch,delete pods
				create pods:exec
				get,list,watch configmaps
				get,create,update,patch,delete namespaces
				deletecollection services
				deletecollection discovery.k8s.io/endpointslices
				get,list,update coordination.k8s.io/leases kube-system
				list,watch,update,patch,delete apiextensions.k8s.io/customresourcedefinitions /widgets.example.org
				create,update,patch,delete apiextensions.k8s.io/customresourcedefinitions /serviceimports.multicluster.x-k8s.io
				create serviceaccounts:token clusterset-dns/clusterset-member
				create,update,bind,escalate rbac.authorization.k8s.io/clusterroles
				impersonate users
				get,create,update,patch,delete nodes
				create,update,delete admissionregistration.k8s.io/validatingadmissionpolicies`,
		},
		{
			// What another cluster holds: it reads two things, and writes nothing.
			who: account(system, "clusterset-member"),
			mustNot: `
				get,create,update,patch,delete,deletecollection discovery.k8s.io/endpointslices
				create,update,patch,delete,deletecollection coordination.k8s.io/leases ` + heartbeat + `
				get,list,watch,create,update,delete coordination.k8s.io/leases clusterset-dns
				get,list coordination.k8s.io/leases kube-system
				get,list,watch,create,update,patch,delete services
				get,list,watch endpoints
				get,list,watch,create,update,patch,delete pods
				create pods:exec
				get pods:log
				get,list,watch,create,update,patch,delete secrets
				get,list,watch,create,update,patch,delete secrets clusterset-dns
				get,list,watch configmaps
				get,list,watch,create,update,patch,delete namespaces
				get,list,watch nodes
				get,list,watch,create,update,patch,delete multicluster.x-k8s.io/serviceexports
				get,list,watch,create,update,patch,delete multicluster.x-k8s.io/serviceimports
				create,patch events
				create serviceaccounts:token clusterset-dns/clusterset-member
				get,list rbac.authorization.k8s.io/clusterroles`,
		},
		{
			who: account("kube-system", "clusterset-coredns"),
			mustNot: `
				get,list,watch secrets
				get,list,watch configmaps
				get,list,watch endpoints
				create,update,patch,delete services
				create,update,patch,delete discovery.k8s.io/endpointslices
				create,update,patch,delete multicluster.x-k8s.io/serviceimports
				update multicluster.x-k8s.io/serviceimports:status
				get,list,watch,create,update,delete multicluster.x-k8s.io/serviceexports
				create pods:exec
				create,update,delete pods
				get,list coordination.k8s.io/leases`,
		},
		{
			who: viewer,
			may: `
				get,list,watch multicluster.x-k8s.io/serviceexports
				get,list,watch multicluster.x-k8s.io/serviceimports
				get,list,watch services
				get,list,watch namespaces
				get,list,watch events
				get,list,watch discovery.k8s.io/endpointslices
				get,list,watch coordination.k8s.io/leases clusterset-dns`,
			mustNot: `
				get,list,watch secrets
				get,list,watch secrets clusterset-dns
				get,list pods
				create,update,patch,delete multicluster.x-k8s.io/serviceexports
				create,update,patch,delete multicluster.x-k8s.io/serviceimports
				create,update,patch,delete discovery.k8s.io/endpointslices
				create,update,patch,delete services
				update,delete coordination.k8s.io/leases ` + heartbeat,
		},
		{
			who: reader,
			may: `
				get,list,watch multicluster.x-k8s.io/serviceexports TEAM
				get,list,watch multicluster.x-k8s.io/serviceimports TEAM`,
			mustNot: `
				get,list,watch multicluster.x-k8s.io/serviceexports
				get,list multicluster.x-k8s.io/serviceimports default
				create,update,patch,delete multicluster.x-k8s.io/serviceexports TEAM
				create,update,patch,delete multicluster.x-k8s.io/serviceimports TEAM`,
		},
		{
			who: editor,
			may: `
				get,list,watch,create,update,patch,delete,deletecollection multicluster.x-k8s.io/serviceexports TEAM
				get,list,watch multicluster.x-k8s.io/serviceimports TEAM`,
			mustNot: `
				create,update,patch,delete multicluster.x-k8s.io/serviceimports TEAM
				update multicluster.x-k8s.io/serviceexports:status TEAM
				update multicluster.x-k8s.io/serviceimports:status TEAM
				create multicluster.x-k8s.io/serviceexports default
				create multicluster.x-k8s.io/serviceexports`,
		},
		{
			who: owner,
			may: `
				get,list,watch,create,update,patch,delete,deletecollection multicluster.x-k8s.io/serviceexports TEAM
				get,list,watch multicluster.x-k8s.io/serviceimports TEAM`,
			mustNot: `
				create,update,patch,delete multicluster.x-k8s.io/serviceimports TEAM
				update multicluster.x-k8s.io/serviceexports:status TEAM
				get,list secrets clusterset-dns`,
		},
	} {
		t.Run(role.who.name, func(t *testing.T) {
			for _, c := range calls(t, role.may, team) {
				// Aggregated roles take a moment.
				eventually(t, string(c), func(ctx context.Context) error {
					ok, err := allowed(ctx, t, cluster, role.who, c)
					if err == nil && !ok {
						err = fmt.Errorf("%s may not %s", role.who.name, c)
					}
					return err
				})
			}
			for _, c := range calls(t, role.mustNot, team) {
				if ok, err := allowed(t.Context(), t, cluster, role.who, c); ok || err != nil {
					t.Errorf("%s may %s: %v", role.who.name, c, err)
				}
			}
		})
	}
}

// calls reads one line for each resource and place. TEAM is a namespace.
func calls(t testing.TB, text, team string) []call {
	t.Helper()
	var list []call
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		verbs, rest, ok := strings.Cut(strings.ReplaceAll(line, "TEAM", team), " ")
		if !ok {
			t.Fatalf("line %q has no resource", line)
		}
		for verb := range strings.SplitSeq(verbs, ",") {
			list = append(list, call(verb+" "+rest))
		}
	}
	return list
}
