// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
)

func (s *Set) secretOf(p Pair) *corev1.Secret {
	secret, err := p.Reader.Kube.CoreV1().Secrets(system).Get(s.Context(), p.secret(), metav1.GetOptions{})
	s.must(err)
	return secret
}

// kubeconfig changes the kubeconfig with which the reader reads the source.
func (s *Set) kubeconfig(p Pair, text []byte) {
	s.edit(p, fmt.Sprintf(`{"data":{%q:%q}}`, member.KubeconfigKey, base64.StdEncoding.EncodeToString(text)))
}

// badSecret: an unusable Secret of a member is rejected with an Event, and the previous credential stays in use. After
// a restart the member is stale. Its contributions stay until it leaves.
func badSecret(s *Set, east, west, north *Cluster) {
	p := Pair{east, west}
	s.kubeconfig(p, []byte("{"))
	east.ExpectEvent(s.secretOf(p), memberstate.EventMemberCredentialInvalid)
	west.SetEndpoints("solo", "10.65.0.9")
	seen := healthy.With("solo", "west/10.65.0.9 -> VIP")
	demoted := westDemoted.With("solo", "west/10.65.0.9 -> VIP")
	s.Expect(seen)
	east.Restart()
	s.Judged(Pair{east, north}, "Alive")
	s.Holds(15*time.Second, seen, east)
	s.Judged(p, "NoHeartbeat")
	s.LeaseSays(p, "stale")
	s.hears(p, time.Time{}) // before the restart
	s.Expect(demoted, east)
	west.SetEndpoints("lone", "10.65.0.8")
	s.Except(east, demoted, seen.With("lone", "west/10.65.0.8 -> 10.65.0.8"))
	s.Leave(p)
	s.Except(east, westGone, seen.With("lone", "west/10.65.0.8 -> 10.65.0.8"))
	s.LeaseSays(p, "")
	s.Join(p)
	s.Expect(seen.With("lone", "west/10.65.0.8 -> 10.65.0.8"))
}

// relabelled: if the label of a Secret is changed to an invalid or the local id, the member that it named has left.
func relabelled(s *Set, east, west, _ *Cluster) {
	p := Pair{east, west}
	for _, id := range []string{"east", "No.Such.Id"} {
		s.edit(p, fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, member.ClusterLabel, id))
		east.ExpectEvent(s.secretOf(p), memberstate.EventMemberCredentialInvalid, fmt.Sprintf("cluster id %q", id))
		s.Except(east, westGone, healthy)
		s.edit(p, fmt.Sprintf(`{"metadata":{"labels":{%q:"west"}}}`, member.ClusterLabel))
		s.Judged(p, "Alive")
		s.Expect(healthy)
	}
}

// wrongServer: the kubeconfig of a member connects to another member, or to the local cluster. Data of that cluster is
// not taken for the member's data.
func wrongServer(s *Set, east, west, north *Cluster) {
	p := Pair{east, west}
	for _, wrong := range []*Cluster{north, east} {
		s.kubeconfig(p, wrong.platform.Credential("east"))
		s.Judged(p, "ClusterIDMismatch")
		west.SetEndpoints("solo", "10.65.0.9")
		s.Except(east, westDemoted, healthy.With("solo", "west/10.65.0.9 -> VIP"))
		if wrong == north {
			s.Pass(6 * time.Minute) // longer than a rebuilt cluster with the right id is quarantined
		}
		s.Judged(p, "ClusterIDMismatch")
		s.Expect(westDemoted, east)
		s.kubeconfig(p, west.platform.Credential("east"))
		s.Judged(p, "Alive")
		s.Expect(healthy.With("solo", "west/10.65.0.9 -> VIP"))
		west.SetEndpoints("solo", "10.65.0.2")
		s.Expect(healthy)
	}
}

// hears waits until the first heartbeat with the current credential arrived after a time, as kubectl clusterset join does, and
// returns when.
func (s *Set) hears(p Pair, after time.Time) (first time.Time) {
	s.Eventually("heartbeat of "+p.Source.Name, func() error {
		first = ptr.Deref(p.Reader.Lease(memberstate.LeasePrefix+p.Source.Name).Spec.RenewTime, metav1.MicroTime{}).Time
		if !first.After(after) {
			return fmt.Errorf("the first one arrived at %s", first)
		}
		return nil
	})
	return first
}

// rotation: a member gets a new credential, and a second Secret. The Secret in use stays in use until it is deleted.
func rotation(s *Set, east, west *Cluster) {
	p := Pair{east, west}
	west.Export("web:10.65.0.10")
	s.Expect(web(ofWest))
	before := east.Import("web").UID
	first := s.hears(p, time.Time{})
	s.kubeconfig(p, append(west.platform.Credential("east"), '\n')) // in the simulation, the next credential is the same
	s.hears(p, first)
	west.SetEndpoints("web", "10.65.0.11")
	s.Expect(web("west/10.65.0.11 -> VIP"))
	if after := east.Import("web").UID; after != before {
		s.Error("the import was made anew")
	}
	s.Pass(2 * time.Second)
	second := east.PutSecret("second", "west", west.platform.Credential("east"))
	east.ExpectEvent(second, memberstate.EventMemberCredentialInvalid)
	s.Leave(p)
	west.SetEndpoints("web", "10.65.0.12")
	s.Expect(web("west/10.65.0.12 -> VIP"))
}

// static: a flag adds a member. A start without the flag means leaving, but an unusable credential does not.
func static(s *Set, east, west *Cluster) {
	p := Pair{east, west}
	west.Export("web:10.65.0.10")
	s.Leave(p)
	s.Expect(web(gone), east)
	path := filepath.Join(s.TempDir(), "west.kubeconfig")
	s.must(os.WriteFile(path, west.platform.Credential("east"), 0o600))
	east.Options.Members = []member.Static{
		{Cluster: "west", Kubeconfig: path}, {Cluster: "north", Kubeconfig: path + ".none"},
	}
	east.Restart()
	s.Expect(web(ofWest))
	east.ExpectMetric(1, "clusterset_controller_member_credentials_invalid")
	// A file that changes is used within a minute, unless it is broken.
	s.must(os.WriteFile(path, east.platform.Credential("east"), 0o600))
	s.Judged(p, "ClusterIDMismatch")
	s.must(os.WriteFile(path, west.platform.Credential("east"), 0o600))
	s.Judged(p, "Alive")
	s.must(os.WriteFile(path, []byte("{"), 0o600))
	east.ExpectMetric(2, "clusterset_controller_member_credentials_invalid")
	west.SetEndpoints("web", "10.65.0.11")
	s.Expect(web("west/10.65.0.11 -> VIP"))
	east.Restart()
	east.Export("web:10.64.0.10")
	s.Expect(web("east/10.64.0.10 west/10.65.0.11 -> VIP"), east)
	east.Options.Members = nil
	east.Restart()
	s.Expect(web(ofEast), east)
}
