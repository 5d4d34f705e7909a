// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/controller/relay"
	"github.com/clusterset-dns/clusterset-dns/controller/relay/mailbox"
)

// TestRelays: relays are those of the controller, and without a signing key they are not written.
func TestRelays(t *testing.T) {
	secret := func(name, label string, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "mcs", Name: name, Labels: map[string]string{mailbox.RelayLabel: label}},
			Data:       data,
		}
	}
	kubeconfig := map[string][]byte{"kubeconfig": []byte(`{"apiVersion": "v1", "kind": "Config", "current-context": "a",
		"contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}], "users": [{"name": "a", "user": {"token": "t"}}],
		"clusters": [{"name": "a", "cluster": {"server": "https://hub"}}]}`)}
	for name, test := range map[string]struct {
		key  *corev1.Secret
		want string
	}{
		"no key": {nil, "there is no Secret clusterset-dns-signing-key"},
		"no PEM": {&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "mcs", Name: mailbox.SigningKeySecret},
			Data:       map[string][]byte{mailbox.SigningKeyKey: []byte("key")},
		}, "the signing key is no PEM text"},
	} {
		client := fake.NewClientset(secret("one", "hub", kubeconfig), secret("two", "hub", kubeconfig),
			secret("three", "other", nil), secret("four", "direct", kubeconfig))
		if test.key != nil {
			_ = client.Tracker().Add(test.key)
		}
		f := &Facts{}
		if err := f.relays(t.Context(), &cluster.Cluster{Namespace: "mcs", Kube: client}, ""); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, each := range f.Relays {
			if each.Refused == nil {
				got = append(got, each.Secret.Name)
			}
		}
		if len(f.Relays) != 4 || strings.Join(got, " ") != "one" {
			t.Errorf("%s: %d relays, of which %s are valid", name, len(f.Relays), got)
		}
		if f.Unsigned == nil || !strings.Contains(f.Unsigned.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", name, f.Unsigned, test.want)
		}
	}
	none := &Facts{}
	if err := none.relays(t.Context(), &cluster.Cluster{Kube: fake.NewClientset()}, ""); err != nil || none.Unsigned != nil {
		t.Errorf("without relays: %v, %v", none.Unsigned, err)
	}
}

// TestUnwritten: the newest Event of the current leader counts.
func TestUnwritten(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 5e8, time.UTC)
	event := func(reason string, after time.Duration) corev1.Event {
		return corev1.Event{Reason: reason, Message: reason, LastTimestamp: metav1.Time{Time: at.Add(after).Truncate(time.Second)}}
	}
	for name, test := range map[string]struct {
		events []corev1.Event
		want   string
	}{
		"none":               {nil, ""},
		"failed":             {[]corev1.Event{event("Other", 1), event(relay.EventMailboxFailed, 0)}, relay.EventMailboxFailed},
		"written since":      {[]corev1.Event{event(relay.EventMailboxWritten, 9), event(relay.EventMailboxFailed, 0)}, ""},
		"of a former leader": {[]corev1.Event{event(relay.EventMailboxFailed, -time.Second)}, ""},
	} {
		f := &Facts{Leader: &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{AcquireTime: &metav1.MicroTime{Time: at}}}}
		if got := f.unwritten(test.events); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
