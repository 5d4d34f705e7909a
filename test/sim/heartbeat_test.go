// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/heartbeat"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
)

// TestHeartbeatVouches: the heartbeat begins once each export was reconciled, even if that failed. It stops while slices can be
// written in no namespace, and resumes when they can; then the change is published at once. A quota of one namespace does not
// stop it, nor does a failure that is over. The Lease keeps the annotations of other writers.
func TestHeartbeatVouches(t *testing.T) {
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		west.Export("other:10.65.0.9")
		east.Export("web:10.64.0.1", "other:10.64.0.9")
		beats := func(when string, want bool) {
			t.Helper()
			age := time.Since(east.Lease(member.HeartbeatLease).Spec.RenewTime.Time)
			if (age < liveness.HeartbeatInterval+time.Second) != want {
				t.Errorf("%s: the heartbeat was renewed %s ago", when, age)
			}
		}
		refuse := func(namespaces ...string) {
			east.API.SetRefuse(func(r apiserver.Request) *apierrors.StatusError {
				if r.Host != "east" || r.Resource.Resource != "endpointslices" || !slices.Contains([]string{"create", "update"}, r.Verb) ||
					!strings.Contains(strings.Join(namespaces, " "), r.Namespace) {
					return nil
				}
				return apierrors.NewForbidden(r.Resource, "", errors.New("denied"))
			})
		}
		sim.Wait(time.Minute)
		east.Put(fmt.Sprintf("{apiVersion: coordination.k8s.io/v1, kind: Lease, "+
			"metadata: {namespace: %s, name: %s, annotations: {other: kept, %s: 'true'}}}",
			member.DefaultNamespace, member.HeartbeatLease, member.DrainAnnotation))
		sim.Wait(2 * liveness.HeartbeatInterval)
		beats("another writer", true)
		annotations := east.Lease(member.HeartbeatLease).Annotations
		if annotations[member.DrainAnnotation] != "" || annotations["other"] != "kept" {
			t.Errorf("after another writer, the heartbeat has %v", annotations)
		}
		east.Stop()
		east.SetEndpoints("web", "10.64.0.2")
		refuse(sim.Namespace)
		east.API.SetFault("east", slowWrites(40*time.Second))
		sim.Wait(time.Minute)
		east.Start()
		sim.Wait(7 * time.Second)
		beats("before all exports were reconciled", false)
		sim.Wait(15 * time.Second)
		beats("writes of one namespace hang", true)
		sim.Wait(2 * time.Minute)
		beats("a quota of one namespace", true)
		east.API.SetFault("east", nil)
		east.API.SetRefuse(nil)
		sim.Wait(10 * time.Minute)
		refuse(sim.Namespace, member.DefaultNamespace)
		sim.Wait(2 * time.Minute)
		beats("nothing is to be written", true)
		east.SetEndpoints("web", "10.64.0.3")
		sim.Wait(controller.DefaultOptions().Liveness.StaleAfter - liveness.HeartbeatInterval)
		beats("not for long", true)
		sim.Wait(time.Minute)
		beats("no slice can be written", false)
		east.ExpectMetric(1, "clusterset_controller_heartbeat_stopped", "reason", string(heartbeat.WritesFail))
		east.ExpectEvent(&metav1.ObjectMeta{}, heartbeat.EventHeartbeatStopped, "denied")
		sim.Wait(10 * time.Minute) // a long backoff
		east.API.SetRefuse(nil)
		sim.Wait(liveness.HeartbeatInterval + time.Second)
		beats("slices can be written", true)
		expect(t, west, map[string]string{"web": "east/10.64.0.3 -> VIP"})
	})
}

// TestNodePortsThatAreRefused: an export whose Service with node ports cannot be written is not ready for other networks.
func TestNodePortsThatAreRefused(t *testing.T) {
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east := set.Cluster("east")
		set.Cluster("west").Options.Network = "islands"
		set.Cluster("west").Restart()
		east.Options.Expose = string(export.ExposeNodePort)
		east.Restart()
		east.Export("web:10.64.0.1")
		east.PutService("web", "{selector: {app: x}, ipFamilyPolicy: SingleStack, ports: [{name: http, port: 80, targetPort: 8080}]}")
		sim.Wait(time.Minute)
		east.API.SetRefuse(func(r apiserver.Request) *apierrors.StatusError {
			if r.Resource.Resource != "services" || r.Verb != "create" {
				return nil
			}
			return apierrors.NewForbidden(r.Resource, "", errors.New("denied"))
		})
		east.DeleteService(export.NodePortServiceName(types.NamespacedName{Namespace: sim.Namespace, Name: "web"}))
		expect(t, east, map[string]string{"web": "east/10.64.0.1 -> VIP [Conflict=NoConflicts Ready=Failed Valid=Valid]"})
	})
}
