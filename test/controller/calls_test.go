// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"os"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/audit"
	"github.com/clusterset-dns/clusterset-dns/test/scenario"
)

// unused are rights that the programs need, but may not use in this test: the reasons, by the name of the role and by
// call.
var unused = map[string]map[audit.Call]string{
	"clusterset-controller": {
		"get multicluster.x-k8s.io/serviceexports": conflict,
		"get multicluster.x-k8s.io/serviceimports": conflict,
		"get services":                        conflict,
		"get discovery.k8s.io/endpointslices": conflict,
		"patch events":                        "where the same happens again",
		"create discovery.k8s.io/endpointslices:restricted":      "OpenShift's admission asks for it",
		"update multicluster.x-k8s.io/serviceexports:finalizers": "admission OwnerReferencesPermissionEnforcement asks for it",
		"update multicluster.x-k8s.io/serviceimports:finalizers": "admission OwnerReferencesPermissionEnforcement asks for it",
	},
	"clusterset-member": {
		"get coordination.k8s.io/leases": "kubectl clusterset tries a credential with it",
	},
}

const conflict = "where somebody else writes at the same time"

// TestEveryCallIsAllowedAndEveryRightIsUsed makes two clusters use every feature once, and compares the audit logs of their API
// servers with the rights: the clusters join, a service is exported, changes, conflicts, and is withdrawn; a member leaves.
func TestEveryCallIsAllowedAndEveryRightIsUsed(t *testing.T) {
	t.Parallel()
	bed := &realBed{}
	bed.run(t, scenario.Scenario{Clusters: []string{"east", "west"}, Run: func(s *scenario.Set) {
		east, west := s.Cluster("east"), s.Cluster("west")
		for _, p := range s.Pairs() {
			s.Leave(p)
		}
		var logs []audit.Log
		for _, c := range s.Clusters() {
			c.Stop()
			logs = append(logs, audit.Of(t, bed.planes[c.Name]))
			c.Options.LeaderElection, c.Options.Expose = true, string(export.ExposeGateway)
		}
		east.Export("web:10.64.0.10")
		for _, c := range s.Clusters() {
			c.Start()
		}
		for _, p := range s.Pairs() {
			s.Join(p)
		}
		s.Expect(scenario.View{"web": "east/10.64.0.10 -> VIP"})
		east.PutService("web", "{ports: [{name: http, port: 81, targetPort: 8080}]}")
		east.SetEndpoints("web", "10.64.0.11")
		s.Expect(scenario.View{"web": "east/10.64.0.11 -> VIP"})
		west.Export("web!10.65.0.10")
		s.Expect(scenario.View{
			"web": "east/10.64.0.11 west/10.65.0.10 -> VIP [Conflict=PortConflict,TypeConflict Ready=Ready Valid=Valid]",
		})
		s.Becomes("Gateways are listed", "true", func() (string, error) {
			return fmt.Sprint(logs[0].Has(t, "list gateway.networking.k8s.io/udproutes")), nil
		})
		s.Annotate(s.Pair("west", "east"), member.RankAnnotation, "no number")
		s.Becomes("an Event says that the rank is invalid", "true", func() (string, error) {
			return fmt.Sprint(logs[1].Has(t, "create events")), nil
		})
		east.Withdraw("web")
		west.Withdraw("web")
		s.Expect(scenario.View{"web": "none -> NXDOMAIN"})
		s.Leave(s.Pair("west", "east"))
		s.LeaseSays(s.Pair("west", "east"), "")
		roles, err := os.ReadFile("../../deploy/rbac.yaml")
		must(t, err)
		for _, problem := range audit.Compare(t, string(roles), unused, logs...) {
			t.Error(problem)
		}
	}})
}
