// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/audit"
)

// TestRights checks each role with the API server: operations that administrators need are allowed, and dangerous ones
// are not. Programs have no right that they do not use, see audit.Compare here and in test/controller; what is left to check
// is that such a right is not one in all namespaces, or to all objects.
func TestRights(t *testing.T) {
	cluster := installed(t)
	viewer, reader, editor, owner := user{UserName: "viewer"}, user{UserName: "reader"}, user{UserName: "editor"}, user{UserName: "owner"}
	team := namespaceOf(t, cluster, "team-")
	grant(t, cluster, "", "clusterset-viewer", viewer)
	grant(t, cluster, team, "view", reader)
	grant(t, cluster, team, "edit", editor)
	grant(t, cluster, team, "admin", owner)
	for _, role := range []struct {
		who          []user
		may, mustNot string
	}{
		{
			who: []user{audit.Account(system, "clusterset-controller")},
			mustNot: `
				get,list,watch secrets
				get,create,update,patch,delete,deletecollection secrets clusterset-dns
				get,list,update coordination.k8s.io/leases kube-system
				get,list,watch apiextensions.k8s.io/customresourcedefinitions
				create serviceaccounts:token clusterset-dns/clusterset-member`,
		},
		{
			who: []user{audit.Account(system, "clusterset-member")},
			mustNot: `
				get,list,watch coordination.k8s.io/leases clusterset-dns
				get,list,watch coordination.k8s.io/leases kube-system`,
		},
		{
			who: []user{viewer},
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
				update,delete coordination.k8s.io/leases clusterset-dns/clusterset-dns-heartbeat`,
		},
		{
			who: []user{reader},
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
			who: []user{editor, owner},
			may: `
				get,list,watch,create,update,patch,delete,deletecollection multicluster.x-k8s.io/serviceexports TEAM
				get,list,watch multicluster.x-k8s.io/serviceimports TEAM`,
			mustNot: `
				create,update,patch,delete multicluster.x-k8s.io/serviceimports TEAM
				update multicluster.x-k8s.io/serviceexports:status TEAM
				update multicluster.x-k8s.io/serviceimports:status TEAM
				create multicluster.x-k8s.io/serviceexports default
				create multicluster.x-k8s.io/serviceexports
				get,list secrets clusterset-dns`,
		},
	} {
		for _, who := range role.who {
			t.Run(who.UserName, func(t *testing.T) {
				for _, c := range audit.Calls(t, strings.ReplaceAll(role.may, "TEAM", team)) {
					// Aggregated roles take effect after a moment.
					eventually(t, string(c), func(ctx context.Context) error {
						ok, err := audit.Allowed(ctx, cluster, who, c)
						if err == nil && !ok {
							err = fmt.Errorf("%s may not %s", who.UserName, c)
						}
						return err
					})
				}
				for _, c := range audit.Calls(t, strings.ReplaceAll(role.mustNot, "TEAM", team)) {
					if ok, err := audit.Allowed(t.Context(), cluster, who, c); ok || err != nil {
						t.Errorf("%s may %s: %v", who.UserName, c, err)
					}
				}
			})
		}
	}
}
