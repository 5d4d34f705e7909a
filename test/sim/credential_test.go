// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
)

// TestCredentialEnds: a member rejects the credentials of some readers, because a token ended, or of all, because the
// key that signs tokens was replaced. Each of them demotes the member, reports why, removes nothing, and recovers
// without a restart once it has another credential.
func TestCredentialEnds(t *testing.T) {
	for _, row := range []struct {
		name    string
		readers []string
	}{
		{"the token of one reader", []string{"east"}},
		{"all, with the signing key", []string{"east", "north"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			sim.Run(t, three, func(t *testing.T, set *sim.ClusterSet) {
				for _, c := range set.Clusters() {
					c.Serve("web", false, map[string]string{
						"east": "10.64.0.1", "west": "10.65.0.1", "north": "10.66.0.1",
					}[c.Name])
					c.Export("web")
				}
				west := set.Cluster("west")
				sim.Wait(time.Minute)
				for _, reader := range row.readers {
					refuse := apiserver.Refusal(apierrors.NewUnauthorized("Unauthorized"))
					west.API.SetFault(reader, func(req *http.Request, serve apiserver.Serve) (*http.Response, error) {
						if req.Header.Get("Authorization") == "Bearer token-of-"+reader {
							return refuse(req, serve)
						}
						return serve(req)
					})
				}
				sim.Wait(staleAfter + member.HeartbeatInterval)
				for _, reader := range []string{"east", "north"} {
					want := everywhere
					for _, each := range row.readers {
						if reader == each {
							want = withoutIt
						}
					}
					expect(t, set.Cluster(reader), map[string]string{"web": want})
				}
				for _, reader := range row.readers {
					if text := unreachable(t, set.Cluster(reader)); !strings.Contains(text, "nauthorized") {
						t.Errorf("the Event in %s does not name the credential: %q", reader, text)
					}
				}
				sim.Wait(time.Hour)
				for i, reader := range row.readers {
					c := set.Cluster(reader)
					expect(t, c, map[string]string{"web": withoutIt})
					rotate(t, c, west, i)
					sim.Wait(10 * time.Second)
					expect(t, c, map[string]string{"web": everywhere})
					if state := stateOf(t, c, "west"); state != liveness.Fresh.String() {
						t.Errorf("west is %s for %s after another credential", state, reader)
					}
				}
			})
		})
	}
}

// unreachable returns the newest Event that says why west cannot be read.
func unreachable(t *testing.T, reader *sim.Cluster) (text string) {
	t.Helper()
	events, err := reader.Kube.CoreV1().Events(member.DefaultNamespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for i := range events.Items {
		if event := &events.Items[i]; event.Reason == memberstate.EventMemberUnreachable &&
			event.Type == corev1.EventTypeWarning && event.InvolvedObject.Name == "member-west" {
			text = event.Message
		}
	}
	return text
}

// stateOf returns the state of a member as its Lease shows it.
func stateOf(t *testing.T, reader *sim.Cluster, source string) string {
	t.Helper()
	lease, err := reader.Kube.CoordinationV1().Leases(member.DefaultNamespace).Get(t.Context(),
		memberstate.LeasePrefix+source, metav1.GetOptions{})
	must(t, err)
	return lease.Annotations[memberstate.StateAnnotation]
}
