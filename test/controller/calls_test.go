// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/test/audit"
)

// unused are rights that the programs have and may not use in what this test
// has them do, by the name of the role, and why they have them.
var unused = map[string]map[audit.Call]string{
	"clusterset-controller": {
		"get about.k8s.io/clusterproperties":       "where no flag gives the id of the cluster",
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

// TestEveryCallIsAllowedAndEveryRightIsUsed has two clusters do all that they
// do, once, and compares what their API servers write down with the rights: they
// join, a service is exported, changes, conflicts, and goes; a member leaves.
func TestEveryCallIsAllowedAndEveryRightIsUsed(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	logs := []audit.Log{audit.Of(t, east.Cluster), audit.Of(t, west.Cluster)}
	east.options.LeaderElection, west.options.LeaderElection = true, true
	joined(t, east, west)
	demo := namespace(t, east, west)
	web := key(demo, "web")
	east.create(t, demo, service("web", "10.64.0.10")+serviceExport("web"))
	expect(t, web, "ClusterSetIP of east Ready [east/10.64.0.10]", east, west)
	east.create(t, demo, strings.ReplaceAll(service("web", "10.64.0.11"), "port: 80,", "port: 81,"))
	expect(t, web, "ClusterSetIP of east Ready [east/10.64.0.11]", east, west)
	west.create(t, demo, headless("web", "10.65.0.10")+serviceExport("web"))
	expectConditions(t, west, web, "Conflict=PortConflict,TypeConflict Ready=Ready Valid=Valid")
	east.unexport(t, web)
	west.unexport(t, web)
	for _, c := range []*cluster{east, west} {
		eventually(t, "the import of "+c.Name()+" is gone", func(ctx context.Context) error {
			_, err := c.serviceImport(ctx, web)
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		})
	}
	west.leave(t, east)
	eventually(t, "the Lease of the member is gone", func(ctx context.Context) error {
		_, err := west.CoordinationV1().Leases(system).Get(ctx, "clusterset-dns-member-east", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	roles, err := os.ReadFile("../../deploy/rbac.yaml")
	must(t, err)
	for _, problem := range audit.Compare(t, string(roles), unused, logs...) {
		t.Error(problem)
	}
}
