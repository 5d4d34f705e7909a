// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/controller/relay/mailbox"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
)

// runStar runs a scenario on three clusters that export web and reach each other through two relays alone.
func runStar(t *testing.T, scenario func(t *testing.T, set *sim.ClusterSet)) {
	sim.RunStar(t, three, sim.RelayNames, func(t *testing.T, set *sim.ClusterSet) {
		exportWeb(set)
		sim.Wait(time.Minute)
		expect(t, set.Cluster("east"), map[string]string{"web": everywhere})
		scenario(t, set)
	})
}

func exportWeb(set *sim.ClusterSet) {
	for _, c := range set.Clusters() {
		c.Serve("web", false, map[string]string{"east": "10.64.0.1", "west": "10.65.0.1", "north": "10.66.0.1"}[c.Name])
		c.Export("web")
	}
}

// memberLease is the Lease of a member in a reader.
func memberLease(t *testing.T, reader *sim.Cluster, source string) *coordinationv1.Lease {
	t.Helper()
	lease, err := reader.Kube.CoordinationV1().Leases(member.DefaultNamespace).Get(t.Context(), memberstate.LeasePrefix+source,
		metav1.GetOptions{})
	must(t, err)
	return lease
}

// through is the path on which a reader reads a member.
func through(t *testing.T, reader *sim.Cluster, source string) string {
	t.Helper()
	return memberLease(t, reader, source).Annotations[memberstate.ReadThroughAnnotation]
}

// setSecret replaces the data of a Secret of a controller.
func setSecret(t *testing.T, c *sim.Cluster, name string, data map[string][]byte) {
	t.Helper()
	secrets := c.Kube.CoreV1().Secrets(member.DefaultNamespace)
	secret, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	secret.Data = data
	_, err = secrets.Update(t.Context(), secret, metav1.UpdateOptions{})
	must(t, err)
}

func deleteSecret(t *testing.T, c *sim.Cluster, name string) {
	t.Helper()
	must(t, c.Kube.CoreV1().Secrets(member.DefaultNamespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
}

// another is another key pair of a cluster, in PEM.
func another(t *testing.T, seed byte) (public, private []byte) {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	must(t, err)
	public = pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	der, err = x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	return public, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func publicKeys(keys ...[]byte) map[string][]byte {
	return map[string][]byte{mailbox.PublicKeysKey: bytes.Join(keys, nil)}
}

func signingKey(private []byte) map[string][]byte {
	return map[string][]byte{mailbox.SigningKeyKey: private}
}

// expectFresh expects that a member is fresh for a time.
func expectFresh(t *testing.T, reader *sim.Cluster, source string, lasts time.Duration) {
	t.Helper()
	for began := time.Now(); time.Since(began) < lasts; sim.Wait(time.Second) {
		if state := stateOf(t, reader, source); state != liveness.Fresh.String() {
			t.Fatalf("%s is %s after %s", source, state, time.Since(began))
		}
	}
}

// TestASigningKeyIsReplaced: in two steps nothing is demoted, and the former key can be removed. A key that is removed is
// not used from then on, and what is known stays.
func TestASigningKeyIsReplaced(t *testing.T) {
	runStar(t, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		former := west.Membership()[mailbox.PublicKeysKey]
		public, private := another(t, 77)
		setSecret(t, east, "member-west", publicKeys(former, public))
		expectFresh(t, east, "west", time.Minute)
		setSecret(t, west, mailbox.SigningKeySecret, signingKey(private))
		expectFresh(t, east, "west", time.Minute)
		setSecret(t, east, "member-west", publicKeys(public))
		expectFresh(t, east, "west", time.Minute)
		west.SetEndpoints("web", "10.65.0.2")
		expect(t, east, map[string]string{"web": strings.Replace(everywhere, "10.65.0.1", "10.65.0.2", 1)})

		// The key is compromised: another one is all that counts.
		stranger, _ := another(t, 78)
		setSecret(t, east, "member-west", publicKeys(stranger))
		sim.Wait(time.Second)
		west.SetEndpoints("web", "10.65.0.66")
		expect(t, east, map[string]string{"web": strings.Replace(everywhere, "10.65.0.1", "10.65.0.2", 1)})
		sim.Wait(staleAfter + member.HeartbeatInterval)
		expect(t, east, map[string]string{"web": strings.Replace(withoutIt, "10.65.0.1", "10.65.0.2", 1)})
		if text := unreachable(t, east); !strings.Contains(text, "no public key") {
			t.Errorf("the Event does not name the key: %q", text)
		}
		setSecret(t, east, "member-west", publicKeys(public))
		sim.Wait(2 * member.HeartbeatInterval)
		expect(t, east, map[string]string{"web": strings.Replace(everywhere, "10.65.0.1", "10.65.0.66", 1)})
	})
}

// TestRelaysAreLost: with one relay, all members are read through the other. Without any, no member is heard, so that
// this cluster is the one that is cut off: nothing is demoted, and nothing is lost.
func TestRelaysAreLost(t *testing.T) {
	runStar(t, func(t *testing.T, set *sim.ClusterSet) {
		east, relays := set.Cluster("east"), set.Relays()
		for i, lost := range relays {
			lost.StopAPI()
			expectFresh(t, east, "west", 2*staleAfter)
			for _, source := range []string{"west", "north"} {
				if at := through(t, east, source); at != relays[1-i].Name {
					t.Errorf("%s is read through %q without %s", source, at, lost.Name)
				}
			}
			lost.StartAPI()
			sim.Wait(time.Minute)
		}
		for _, relay := range relays {
			relay.StopAPI()
		}
		sim.Wait(2 * staleAfter)
		expect(t, east, map[string]string{"web": everywhere})
		for _, relay := range relays {
			relay.StartAPI()
		}
		set.Cluster("west").SetEndpoints("web", "10.65.0.3")
		sim.Wait(time.Minute)
		expect(t, east, map[string]string{"web": strings.Replace(everywhere, "10.65.0.1", "10.65.0.3", 1)})
		expectFresh(t, east, "west", time.Second)
	})
}

// TestAMemberLosesItsRelays: a member that reaches no relay is demoted as a silent one, and returns.
func TestAMemberLosesItsRelays(t *testing.T) {
	runStar(t, func(t *testing.T, set *sim.ClusterSet) {
		east := set.Cluster("east")
		for _, relay := range set.Relays() {
			set.Network.Refuse("west", relay.Name)
			set.Network.Reset("west", relay.Name)
		}
		sim.Wait(staleAfter + member.HeartbeatInterval)
		expect(t, east, map[string]string{"web": withoutIt})
		for _, relay := range set.Relays() {
			set.Network.Restore("west", relay.Name)
		}
		sim.Wait(time.Minute)
		expect(t, east, map[string]string{"web": everywhere})
	})
}

// TestTheDirectPathIsLost: a member is read through a relay while its API server is not reached, and directly again once
// the relays fail. It is never demoted.
func TestTheDirectPathIsLost(t *testing.T) {
	sim.RunIdle(t, append([]string{"east", "west"}, sim.RelayNames...), func(t *testing.T, set *sim.ClusterSet) {
		set.MakeStar(t, 2)
		east, west := set.Cluster("east"), set.Cluster("west")
		for _, pair := range [][2]*sim.Cluster{{east, west}, {west, east}} {
			data := pair[1].Membership()
			data[member.KubeconfigKey] = pair[1].Kubeconfig(pair[0].Name)
			createMember(t, pair[0], pair[1].Name, data)
			pair[0].StartController()
			pair[0].StartDNS()
		}
		exportWeb(set)
		sim.Wait(time.Minute)
		want := func(at string) string { return "east/10.64.0.1 west/" + at + " -> VIP" }
		expect(t, east, map[string]string{"web": want("10.65.0.1")})
		if at := through(t, east, "west"); at != member.Direct {
			t.Fatalf("west is read through %q", at)
		}
		set.Network.Refuse("east", "west")
		set.Network.Reset("east", "west")
		expectFresh(t, east, "west", 2*staleAfter)
		if at := through(t, east, "west"); !strings.HasPrefix(at, "relay") {
			t.Errorf("west is read through %q, and cannot be read directly", at)
		}
		west.SetEndpoints("web", "10.65.0.2")
		expect(t, east, map[string]string{"web": want("10.65.0.2")})
		set.Network.Restore("east", "west")
		expectFresh(t, east, "west", time.Minute)
		for _, relay := range set.Relays() {
			set.Network.Refuse("east", relay.Name)
			set.Network.Reset("east", relay.Name)
		}
		expectFresh(t, east, "west", 2*staleAfter)
		if at := through(t, east, "west"); at != member.Direct {
			t.Errorf("west is read through %q, and no relay is reached", at)
		}
		west.SetEndpoints("web", "10.65.0.3")
		expect(t, east, map[string]string{"web": want("10.65.0.3")})
	})
}

// createMember creates the Secret of a member.
func createMember(t *testing.T, reader *sim.Cluster, id string, data map[string][]byte) {
	t.Helper()
	_, err := reader.Kube.CoreV1().Secrets(member.DefaultNamespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "member-" + id, Labels: map[string]string{member.ClusterLabel: id}}, Data: data,
	}, metav1.CreateOptions{})
	must(t, err)
}

// TestARelayThatIsAMember: two clusters read each other through a third one, which they also read directly. Once it is
// gone, so is their path, and nothing is lost.
func TestARelayThatIsAMember(t *testing.T) {
	sim.RunIdle(t, []string{"east", "west", "north"}, func(t *testing.T, set *sim.ClusterSet) {
		set.MakeStar(t, 2)
		east, west, hub := set.Cluster("east"), set.Cluster("west"), set.Relays()[0]
		createMember(t, east, "west", west.Membership())
		createMember(t, west, "east", east.Membership())
		for _, c := range []*sim.Cluster{east, west} {
			createMember(t, c, hub.Name, map[string][]byte{member.KubeconfigKey: hub.Kubeconfig(c.Name)})
			createMember(t, hub, c.Name, c.Membership())
		}
		_, err := hub.Kube.CoreV1().Secrets(member.DefaultNamespace).Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "relay-here", Labels: map[string]string{mailbox.RelayLabel: "here"}},
			Data:       map[string][]byte{member.KubeconfigKey: hub.Kubeconfig(hub.Name)},
		}, metav1.CreateOptions{})
		must(t, err)
		for _, c := range []*sim.Cluster{east, west, hub} {
			c.StartController()
			c.StartDNS()
		}
		exportWeb(set)
		hub.Serve("web", false, "10.66.0.1")
		hub.Export("web")
		sim.Wait(time.Minute)
		for _, c := range []*sim.Cluster{east, west, hub} {
			expect(t, c, map[string]string{"web": everywhere})
		}
		if at := through(t, east, "west"); at != hub.Name {
			t.Errorf("west is read through %q", at)
		}
		hub.StopController() // the relay still works
		sim.Wait(staleAfter + member.HeartbeatInterval)
		expect(t, east, map[string]string{"web": "east/10.64.0.1 north/10.66.0.1~ west/10.65.0.1 -> VIP"})
		hub.StopAPI()
		sim.Wait(2 * staleAfter)
		for _, address := range []string{"10.64.0.1", "10.65.0.1", "10.66.0.1"} {
			if got := east.See("web"); !strings.Contains(got, address) {
				t.Errorf("%s is lost: %s", address, got)
			}
		}
		hub.StartAPI()
		hub.StartController()
		sim.Wait(2 * time.Minute)
		expect(t, east, map[string]string{"web": everywhere})
	})
}

// TestSecretsAreRemoved: without its Secret, a member that is read through a relay leaves within seconds. Without that of
// the relay, its members are read through the next one.
func TestSecretsAreRemoved(t *testing.T) {
	runStar(t, func(t *testing.T, set *sim.ClusterSet) {
		east := set.Cluster("east")
		at := through(t, east, "west")
		deleteSecret(t, east, "relay-"+at)
		sim.Wait(2 * member.HeartbeatInterval)
		if now := through(t, east, "west"); now == at || now == "" {
			t.Errorf("west is read through %q, before through %q", now, at)
		}
		expectFresh(t, east, "west", time.Minute)
		deleteSecret(t, east, "member-west")
		expect(t, east, map[string]string{"web": "east/10.64.0.1 north/10.66.0.1 -> VIP"})
		_, err := east.Kube.CoordinationV1().Leases(member.DefaultNamespace).Get(t.Context(), memberstate.LeasePrefix+"west",
			metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("the Lease of west: %v", err)
		}
	})
}

// TestANewLeaderKnowsWhatWasHeard: relays that return to an earlier state of a mailbox do not mislead a new leader.
func TestANewLeaderKnowsWhatWasHeard(t *testing.T) {
	runStar(t, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		var restore []func()
		for _, relay := range set.Relays() {
			restore = append(restore, saveMailbox(t, relay, west))
		}
		west.SetEndpoints("web", "10.65.0.2")
		sim.Wait(time.Minute)
		current := strings.Replace(everywhere, "10.65.0.1", "10.65.0.2", 1)
		expect(t, east, map[string]string{"web": current})
		east.KillController()
		west.KillController()
		heard := memberLease(t, east, "west").Annotations[memberstate.HeardAnnotation] // it is written every second
		if heard == "" {
			t.Fatal("the Lease has no counters")
		}
		for _, each := range restore {
			each()
		}
		east.StartController()
		for range 40 {
			sim.Wait(time.Second)
			if got := east.See("web"); strings.Contains(got, "10.65.0.1") {
				t.Fatalf("an earlier state is imported: %s", got)
			}
		}
		if now := memberLease(t, east, "west").Annotations[memberstate.HeardAnnotation]; now != heard {
			t.Errorf("heard %s, before %s", now, heard)
		}
		west.StartController()
		sim.Wait(time.Minute)
		expect(t, east, map[string]string{"web": current})
		expectFresh(t, east, "west", time.Second)
	})
}

// saveMailbox returns a function that restores the mailbox of a source on a relay as it is now.
func saveMailbox(t *testing.T, relay, source *sim.Cluster) func() {
	t.Helper()
	records, leases := relay.Kube.CoreV1().ConfigMaps(source.Mailbox()), relay.Kube.CoordinationV1().Leases(source.Mailbox())
	saved, err := records.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	lease, err := leases.Get(t.Context(), mailbox.HeartbeatLease, metav1.GetOptions{})
	must(t, err)
	return func() {
		clearMailbox(t, relay, source)
		for i := range saved.Items {
			saved.Items[i].ResourceVersion = ""
			_, err := records.Create(t.Context(), &saved.Items[i], metav1.CreateOptions{})
			must(t, err)
		}
		lease.ResourceVersion = ""
		_, err := leases.Create(t.Context(), lease, metav1.CreateOptions{})
		must(t, err)
	}
}

// clearMailbox deletes all that a mailbox has.
func clearMailbox(t *testing.T, relay, source *sim.Cluster) {
	t.Helper()
	records := relay.Kube.CoreV1().ConfigMaps(source.Mailbox())
	list, err := records.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for i := range list.Items {
		must(t, records.Delete(t.Context(), list.Items[i].Name, metav1.DeleteOptions{}))
	}
	must(t, relay.Kube.CoordinationV1().Leases(source.Mailbox()).Delete(t.Context(), mailbox.HeartbeatLease,
		metav1.DeleteOptions{}))
}

// shifted is a clock that is ahead.
type shifted struct {
	clock.RealClock
	ahead *atomic.Int64
}

func (c shifted) Now() time.Time                   { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c shifted) Since(at time.Time) time.Duration { return c.Now().Sub(at) }

// TestAClockFarAhead: counters go on from where they were once the clock of the source is corrected. If the mailboxes are
// lost, too, they begin below, and a new key ends the wait.
func TestAClockFarAhead(t *testing.T) {
	runStar(t, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		var ahead atomic.Int64
		start := func() {
			west.StartController(func(o *controller.Options) { o.Clock = shifted{ahead: &ahead} })
		}
		ahead.Store(int64(24 * time.Hour))
		west.StopController()
		start()
		expectFresh(t, east, "west", time.Minute)
		west.StopController()
		ahead.Store(0)
		start()
		expectFresh(t, east, "west", time.Minute)
		west.SetEndpoints("web", "10.65.0.2")
		expect(t, east, map[string]string{"web": strings.Replace(everywhere, "10.65.0.1", "10.65.0.2", 1)})

		west.StopController()
		for _, relay := range set.Relays() {
			clearMailbox(t, relay, west)
		}
		start()
		sim.Wait(2 * staleAfter)
		if state := stateOf(t, east, "west"); state != liveness.Stale.String() {
			t.Errorf("west is %s, and its counters are below those that were heard", state)
		}
		public, private := another(t, 77)
		setSecret(t, east, "member-west", publicKeys(west.Membership()[mailbox.PublicKeysKey], public))
		setSecret(t, west, mailbox.SigningKeySecret, signingKey(private))
		sim.Wait(time.Minute)
		expect(t, east, map[string]string{"web": strings.Replace(everywhere, "10.65.0.1", "10.65.0.2", 1)})
	})
}

// TestACredentialOfARelayEnds: both relays reject a reader, which reports why, demotes nothing as it hears no member, and
// recovers with another credential.
func TestACredentialOfARelayEnds(t *testing.T) {
	runStar(t, func(t *testing.T, set *sim.ClusterSet) {
		east := set.Cluster("east")
		refuse := apiserver.Refusal(apierrors.NewUnauthorized("Unauthorized"))
		for _, relay := range set.Relays() {
			relay.API.SetFault("east", func(req *http.Request, serve apiserver.Serve) (*http.Response, error) {
				if req.Header.Get("Authorization") == "Bearer token-of-east" {
					return refuse(req, serve)
				}
				return serve(req)
			})
			set.Network.Reset("east", relay.Name)
		}
		sim.Wait(2 * staleAfter)
		expect(t, east, map[string]string{"web": everywhere})
		if text := unreachable(t, east); !strings.Contains(text, " at relay ") || !strings.Contains(text, "nauthorized") {
			t.Errorf("the Event does not name the credential: %q", text)
		}
		// The others read it on no path.
		expect(t, set.Cluster("north"), map[string]string{
			"web": "east/10.64.0.1~ north/10.66.0.1 west/10.65.0.1 -> VIP",
		})
		for _, relay := range set.Relays() {
			setSecret(t, east, "relay-"+relay.Name, map[string][]byte{member.KubeconfigKey: bytes.ReplaceAll(
				relay.Kubeconfig("east"), []byte("token-of-east"), []byte(until2100))})
		}
		sim.Wait(time.Minute)
		expect(t, set.Cluster("north"), map[string]string{"web": everywhere})
		expectFresh(t, east, "west", time.Second)
		families, err := east.Registry.Gather()
		must(t, err)
		expire := 0
		for _, family := range families {
			if family.GetName() == "clusterset_controller_relay_credential_expiration_timestamp_seconds" {
				for _, each := range family.GetMetric() {
					if each.GetGauge().GetValue() == 4102444800 {
						expire++
					}
				}
			}
		}
		if expire != len(sim.RelayNames) {
			t.Errorf("the credentials of %d relays end in 2100 by the metric", expire)
		}
	})
}

// until2100 is a token with the claim {"exp":4102444800}.
const until2100 = "e30.eyJleHAiOjQxMDI0NDQ4MDB9.c2ln"
