// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	s.Eventually("the time of the heartbeat is in the Lease", func() error {
		if east.Lease(memberstate.LeasePrefix+"west").Spec.RenewTime == nil {
			return errors.New("none")
		}
		return nil
	})
	east.Restart()
	s.Judged(Pair{east, north}, "Alive")
	s.Holds(15*time.Second, seen, east)
	s.Judged(p, "NoHeartbeat")
	s.LeaseSays(p, "stale")
	if east.Lease(memberstate.LeasePrefix+"west").Spec.RenewTime == nil {
		s.Error("the time of the heartbeat before the restart is lost")
	}
	s.Expect(demoted, east)
	west.SetEndpoints("lone", "10.65.0.8")
	s.Except(east, demoted, seen.With("lone", "west/10.65.0.8 -> 10.65.0.8"))
	s.Leave(p)
	s.Except(east, westGone, seen.With("lone", "west/10.65.0.8 -> 10.65.0.8"))
	s.LeaseSays(p, "")
	s.Join(p)
	s.Expect(seen.With("lone", "west/10.65.0.8 -> 10.65.0.8"))
}

// wrongServer: the kubeconfig of a member connects to another cluster. Its data is not taken for the member's data.
func wrongServer(s *Set, east, west, north *Cluster) {
	p := Pair{east, west}
	s.kubeconfig(p, north.platform.Credential("east"))
	s.Judged(p, "ClusterIDMismatch")
	west.SetEndpoints("solo", "10.65.0.9")
	s.Except(east, westDemoted, healthy.With("solo", "west/10.65.0.9 -> VIP"))
	s.Pass(6 * time.Minute) // longer than a rebuilt cluster with the right id is quarantined
	s.Judged(p, "ClusterIDMismatch")
	s.Expect(westDemoted, east)
	s.kubeconfig(p, west.platform.Credential("east"))
	s.Judged(p, "Alive")
	s.Expect(healthy.With("solo", "west/10.65.0.9 -> VIP"))
}
