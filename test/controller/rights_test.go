// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/audit"
)

// TestRights asks the API server for what would be dangerous in the hands of a program. That the programs may do what
// they do is proved by TestEveryCallIsAllowedAndEveryRightIsUsed, and the other roles by test/deploy.
func TestRights(t *testing.T) {
	t.Parallel()
	plane := one(t)
	for name, mustNot := range map[string]string{
		controllerName: `
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
		// What another cluster holds: it reads two things, and writes nothing.
		memberName: `
			get,create,update,patch,delete,deletecollection discovery.k8s.io/endpointslices
			create,update,patch,delete,deletecollection coordination.k8s.io/leases clusterset-dns/clusterset-dns-heartbeat
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
	} {
		user, groups := audit.Account(system, name)
		for _, c := range audit.Calls(t, mustNot) {
			if allowed, err := audit.Allowed(t.Context(), plane, user, groups, c); allowed || err != nil {
				t.Errorf("%s may %s: %v", name, c, err)
			}
		}
	}
}
