// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/relay/mailbox"
)

var east = mailbox.Source{Cluster: "east"}

const kubeconfig = `{"apiVersion":"v1","kind":"Config","current-context":"c",
"clusters":[{"name":"c","cluster":{"server":"https://%s"}}],
"users":[{"name":"c","user":{"token":"t"}}],
"contexts":[{"name":"c","context":{"cluster":"c","user":"c"}}]}`

func privateKey(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(append(make([]byte, ed25519.SeedSize-1), seed))
}

func keySecret(t *testing.T, seed byte) *corev1.Secret {
	der, err := x509.MarshalPKCS8PrivateKey(privateKey(seed))
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: mailbox.SigningKeySecret},
		Data: map[string][]byte{
			mailbox.SigningKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
		},
	}
}

func relaySecret(name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{mailbox.RelayLabel: name}},
		Data:       map[string][]byte{member.KubeconfigKey: fmt.Appendf(nil, kubeconfig, name)},
	}
}

// A bed is a Publisher of cluster east, with the relays that it writes to.
type bed struct {
	*testing.T
	*Publisher
	events *record.FakeRecorder
	stop   func()

	mu      sync.Mutex
	secrets []*corev1.Secret
	key     *corev1.Secret
	slices  map[types.NamespacedName]*discoveryv1.EndpointSlice
	relays  map[string]*fake.Clientset
	writes  int
	slow    time.Duration // of a deletion
	refuse  func(clienttesting.Action) error
}

func newBed(t *testing.T, relays ...string) *bed {
	b := &bed{
		T: t, events: record.NewFakeRecorder(100), slices: map[types.NamespacedName]*discoveryv1.EndpointSlice{},
		relays: map[string]*fake.Clientset{}, key: keySecret(t, 1),
	}
	for _, name := range relays {
		b.secrets = append(b.secrets, relaySecret(name))
		b.relays[name] = b.newRelay()
	}
	return b
}

func (b *bed) newRelay() *fake.Clientset {
	client := fake.NewClientset()
	client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.refuse != nil {
			if err := b.refuse(action); err != nil {
				return true, nil, err
			}
		}
		if verb := action.GetVerb(); verb != "list" && verb != "get" && action.GetResource().Resource == "configmaps" {
			b.writes++
		}
		return false, nil, nil
	})
	return client
}

// start begins a term.
func (b *bed) start() {
	b.Publisher = NewPublisher(Config{
		Source: east, Local: b, Recorder: b.events, Clock: clock.RealClock{},
		connect: func(credential member.Credential, namespace string) (*client, error) {
			relay := b.relays[strings.TrimPrefix(credential.Config.Host, "https://")]
			return &client{
				records: slow{relay.CoreV1().ConfigMaps(namespace), b.slow}, leases: relay.CoordinationV1().Leases(namespace),
				close: func() {}, most: 5000,
			}, nil
		},
	})
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() { defer close(done); b.Publisher.Run(ctx) }()
	b.stop = func() { cancel(); <-done }
	synctest.Wait()
}

func (b *bed) Relays() []*corev1.Secret {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.secrets
}

func (b *bed) SigningKey() *corev1.Secret {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.key
}

func (b *bed) Published(string) (names []types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name := range b.slices {
		names = append(names, name)
	}
	return names
}

func (b *bed) PublishedSlice(_ string, name types.NamespacedName) *discoveryv1.EndpointSlice {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.slices[name]
}

// publish publishes a slice with an address, or withdraws it if the address is empty.
func (b *bed) publish(name, address string) {
	key := types.NamespacedName{Namespace: "demo", Name: name}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: name, Labels: map[string]string{
			export.LabelService: "web", export.LabelSourceCluster: "east", export.LabelSliceManagedBy: export.Manager,
		}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}}},
	}
	b.mu.Lock()
	if b.slices[key] = slice; address == "" {
		delete(b.slices, key)
	}
	b.mu.Unlock()
	if b.Publisher != nil {
		b.SliceChanged(key)
	}
}

// renew renews the local heartbeat, and waits until what is due is done.
func (b *bed) renew() {
	b.Renewed(&coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("east"), RenewTime: ptr.To(metav1.NewMicroTime(time.Now())),
	}})
	synctest.Wait()
}

// read returns what a reader with a key finds in a mailbox, and its heartbeat, nil if there is none.
func (b *bed) read(relay string, seed byte) (map[string]string, *mailbox.Ledger, *mailbox.Heartbeat) {
	b.Helper()
	keys := []ed25519.PublicKey{privateKey(seed).Public().(ed25519.PublicKey)}
	namespace := mailbox.Namespace("", "east")
	list, err := b.relays[relay].CoreV1().ConfigMaps(namespace).List(b.Context(), metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	found, ledger := map[string]string{}, &mailbox.Ledger{}
	for i := range list.Items {
		is, err := mailbox.Verify(keys, east, &list.Items[i])
		if err != nil {
			b.Fatal(err)
		}
		slice, err := is.Decode(east)
		if err != nil {
			b.Fatal(err)
		}
		found[slice.Name] = slice.Endpoints[0].Addresses[0]
		ledger.Put(is.Name, is.Entry)
	}
	leases, err := b.relays[relay].CoordinationV1().Leases(namespace).List(b.Context(), metav1.ListOptions{})
	if err != nil || len(leases.Items) > 1 {
		b.Fatal(leases, err)
	}
	if len(leases.Items) == 0 {
		return found, ledger, nil
	}
	heartbeat, err := mailbox.VerifyLease(keys, east, &leases.Items[0])
	if err != nil {
		b.Fatal(err)
	}
	return found, ledger, heartbeat
}

// expect reads a mailbox, whose heartbeat must vouch for what it has, and returns the heartbeat's counter.
func (b *bed) expect(relay string, seed byte, want map[string]string) int64 {
	b.Helper()
	found, ledger, heartbeat := b.read(relay, seed)
	if fmt.Sprint(found) != fmt.Sprint(want) {
		b.Errorf("relay %s has %v, want %v", relay, found, want)
	}
	if heartbeat == nil || heartbeat.Root != ledger.Root() {
		b.Fatalf("relay %s: the heartbeat does not vouch for what it has: %v", relay, heartbeat)
	}
	return heartbeat.Counter
}

func (b *bed) expectEvent(want string) {
	b.Helper()
	select {
	case event := <-b.events.Events:
		if !strings.Contains(event, want) {
			b.Errorf("got the Event %s, want %s", event, want)
		}
	default:
		b.Errorf("no Event %s", want)
	}
}

func (b *bed) countWrites() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	writes := b.writes
	b.writes = 0
	return writes
}

// TestAMailboxIsWhatTheClusterPublishes: a mailbox follows each change with one write, and each heartbeat vouches for
// it, also after a new leader began, which writes nothing that is there.
func TestAMailboxIsWhatTheClusterPublishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "one", "two")
		for i := range 20 {
			b.publish(fmt.Sprint("old-", i), "10.0.0.1")
		}
		b.publish("a", "10.0.0.1")
		b.start()
		if _, _, heartbeat := b.read("one", 1); heartbeat != nil {
			t.Error("there is a heartbeat before the first local one")
		}
		for i := range 20 {
			b.publish(fmt.Sprint("old-", i), "")
		}
		b.renew()
		first := b.expect("one", 1, map[string]string{"a": "10.0.0.1"})
		b.expect("two", 1, map[string]string{"a": "10.0.0.1"})
		b.countWrites()
		b.publish("a", "10.0.0.2")
		b.publish("b", "10.0.0.3")
		b.renew()
		want := map[string]string{"a": "10.0.0.2", "b": "10.0.0.3"}
		second := b.expect("one", 1, want)
		b.expect("two", 1, want)
		if second <= first {
			t.Errorf("the counter went from %d to %d", first, second)
		}
		for _, address := range []string{"10.0.0.4", "10.0.0.2"} {
			b.publish("a", address)
			synctest.Wait()
		}
		if _, _, heartbeat := b.read("one", 1); heartbeat.Counter != second {
			t.Error("a change of a slice renewed the heartbeat, which the local one was not")
		}
		b.renew()
		second = b.expect("one", 1, want)
		if writes := b.countWrites(); writes != 8 {
			t.Errorf("four changes were %d writes to two mailboxes", writes)
		}
		b.stop()

		_, before, _ := b.read("one", 1)
		b.start()
		synctest.Wait()
		if at := b.Beats()["one"]; time.Since(at) != 0 {
			t.Errorf("before the first heartbeat, the last one is of %v", at)
		}
		b.renew()
		third := b.expect("one", 1, want)
		if _, after, _ := b.read("one", 1); after.Root() != before.Root() || third <= second || b.countWrites() != 0 {
			t.Error("a new leader wrote what was there already, or the counter did not grow")
		}
		if beats := b.Beats(); len(beats) != 2 || beats["one"].IsZero() {
			t.Errorf("heartbeats %v", beats)
		}
		b.stop()
	})
}

// TestMailboxesHaveTheSameStatements: a leader that finds different statements about a slice makes them the newest one
// in all mailboxes, so that a reader may change between them.
func TestMailboxesHaveTheSameStatements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "one")
		b.publish("a", "10.0.0.1")
		b.start()
		b.renew()
		b.stop()
		time.Sleep(time.Second) //nolint:forbidigo // advances the virtual time of the synctest bubble
		b.secrets, b.relays["two"] = []*corev1.Secret{relaySecret("two")}, b.newRelay()
		b.start()
		b.renew()
		b.stop()
		b.secrets = append(b.secrets, relaySecret("one"))
		b.start()
		b.renew()
		b.renew()
		b.expect("one", 1, map[string]string{"a": "10.0.0.1"})
		b.expect("two", 1, map[string]string{"a": "10.0.0.1"})
		_, one, _ := b.read("one", 1)
		_, two, _ := b.read("two", 1)
		if one.Root() != two.Root() {
			t.Error("the mailboxes have different statements")
		}
		b.stop()
	})
}

// TestARefusedRecordStopsTheHeartbeatOfItsMailbox: others are written, and the heartbeat returns with the record.
func TestARefusedRecordStopsTheHeartbeatOfItsMailbox(t *testing.T) {
	for name, refusal := range map[string]error{
		"forbidden": apierrors.NewForbidden(corev1.Resource("configmaps"), "x", nil), "unreachable": errors.New("no route"),
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t, "one")
			b.publish("a", "10.0.0.1")
			b.start()
			b.renew()
			before := b.expect("one", 1, map[string]string{"a": "10.0.0.1"})
			record := mailbox.RecordName(types.NamespacedName{Namespace: "demo", Name: "b"})
			b.mu.Lock()
			b.refuse = func(action clienttesting.Action) error {
				if create, ok := action.(clienttesting.CreateAction); ok {
					if object, ok := create.GetObject().(*corev1.ConfigMap); ok && object.Name == record {
						return refusal
					}
				}
				return nil
			}
			b.mu.Unlock()
			b.publish("b", "10.0.0.2")
			b.publish("c", "10.0.0.3")
			for range 4 {
				b.renew()
				time.Sleep(5 * time.Second) //nolint:forbidigo // advances the virtual time of the synctest bubble
			}
			b.expectEvent("MailboxFailed")
			found, _, heartbeat := b.read("one", 1)
			if found["c"] == "" || found["b"] != "" || heartbeat.Counter != before {
				t.Errorf("%s: has %v, and the heartbeat went from %d to %d", name, found, before, heartbeat.Counter)
			}
			b.mu.Lock()
			b.refuse = nil
			b.mu.Unlock()
			time.Sleep(time.Minute) //nolint:forbidigo // advances the virtual time of the synctest bubble
			b.renew()
			b.expect("one", 1, map[string]string{"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.3"})
			b.expectEvent("MailboxWritten")
			b.stop()
		})
	}
}

// TestAnotherWriter: what another writer does to a mailbox is undone.
func TestAnotherWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "one")
		b.publish("a", "10.0.0.1")
		b.publish("b", "10.0.0.2")
		b.start()
		b.renew()
		want := map[string]string{"a": "10.0.0.1", "b": "10.0.0.2"}
		b.expect("one", 1, want)
		err := b.relays["one"].CoreV1().ConfigMaps(mailbox.Namespace("", "east")).Delete(t.Context(),
			mailbox.RecordName(types.NamespacedName{Namespace: "demo", Name: "a"}), metav1.DeleteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(readAgain + time.Second) //nolint:forbidigo // advances the virtual time of the synctest bubble
		b.renew()
		b.expect("one", 1, want)
		b.stop()
	})
}

// TestKeysAndRelaysChange: a new key signs everything again, without a key nothing is written, and relays come and go.
func TestKeysAndRelaysChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "one")
		b.publish("a", "10.0.0.1")
		change := func(do func()) {
			b.mu.Lock()
			do()
			b.mu.Unlock()
			b.Refresh()
			synctest.Wait()
		}
		b.key = nil
		b.start()
		b.renew()
		if found, _, heartbeat := b.read("one", 1); len(found) > 0 || heartbeat != nil {
			t.Error("something is written without a key")
		}
		change(func() { b.key = keySecret(t, 1) })
		b.expect("one", 1, map[string]string{"a": "10.0.0.1"})
		change(func() { b.key = keySecret(t, 2) })
		b.expect("one", 2, map[string]string{"a": "10.0.0.1"})
		change(func() {
			b.key = &corev1.Secret{ObjectMeta: b.key.ObjectMeta}
		})
		b.renew()
		b.expectEvent("SigningKeyInvalid")
		change(func() {
			b.key, b.relays["two"] = keySecret(t, 2), b.newRelay()
			b.secrets = []*corev1.Secret{relaySecret("two"), {ObjectMeta: metav1.ObjectMeta{Name: "three"}}}
		})
		b.expectEvent("RelayInvalid")
		b.publish("b", "10.0.0.2")
		b.renew()
		b.expect("one", 2, map[string]string{"a": "10.0.0.1"})
		b.expect("two", 2, map[string]string{"a": "10.0.0.1", "b": "10.0.0.2"})
		if beats := b.Beats(); len(beats) != 1 {
			t.Errorf("heartbeats %v", beats)
		}
		b.stop()
	})
}

// TestTheHeartbeatHasOneName: readers find it under the same name in a mailbox and in the cluster itself.
func TestTheHeartbeatHasOneName(t *testing.T) {
	if mailbox.HeartbeatLease != member.HeartbeatLease {
		t.Errorf("%s, %s", mailbox.HeartbeatLease, member.HeartbeatLease)
	}
}
