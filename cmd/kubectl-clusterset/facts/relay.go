// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/controller/relay"
	"github.com/clusterset-dns/clusterset-dns/controller/relay/mailbox"
)

// A Relay is one through which the cluster reads and is read.
type Relay struct {
	member.Relay
	// Refused is why the controller rejects the Secret.
	Refused error
	// Failed is the message of the Event that the mailbox of the cluster cannot be written, empty if it can.
	Failed string
}

// Through is the path on which the controller reads the member: member.Direct or the name of a relay. It is empty if
// there is none, or it is unknown.
func (m *Member) Through() string {
	if m.Lease == nil {
		return ""
	}
	if path, relayed := m.Lease.Annotations[memberstate.ReadThroughAnnotation]; relayed {
		return path
	}
	return member.Direct
}

// Relay is the relay through which the controller reads the member, empty if there is none.
func (m *Member) Relay() string {
	if through := m.Through(); through != member.Direct {
		return through
	}
	return ""
}

// relays reads the Secrets of relays, and with them that of the signing key.
func (f *Facts) relays(ctx context.Context, c *cluster.Cluster, _ string) error {
	if f.SecretsUnseen != nil {
		return nil //nolint:nilerr // it is reported with the Secrets of the members
	}
	secrets := c.Kube.CoreV1().Secrets(c.Namespace)
	list, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: mailbox.RelayLabel})
	if err != nil {
		return fmt.Errorf("context %s: Secrets of relays: %w", c.Context, err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Secret) int { // the controller uses the oldest
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	known := map[string]string{}
	for i := range list.Items {
		secret := &list.Items[i]
		each := Relay{}
		each.Relay, each.Refused = member.ParseRelay(secret)
		if first := known[each.Name]; first != "" && each.Refused == nil {
			each.Refused = fmt.Errorf("relay %s is already that of the older Secret %s", each.Name, first)
		}
		if each.Refused == nil {
			known[each.Name] = secret.Name
		}
		events, err := c.Events(ctx, secret)
		if err != nil && !apierrors.IsForbidden(err) {
			return err
		}
		each.Failed = f.unwritten(events)
		f.Relays = append(f.Relays, each)
	}
	if len(f.Relays) == 0 {
		return nil
	}
	key, err := secrets.Get(ctx, mailbox.SigningKeySecret, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		f.Unsigned = errors.New("there is no Secret " + mailbox.SigningKeySecret)
	case apierrors.IsForbidden(err):
	case err != nil:
		return err
	default:
		if _, err := mailbox.ParseSigningKey(key.Data[mailbox.SigningKeyKey]); err != nil {
			f.Unsigned = fmt.Errorf("secret %s, data %s: %w", mailbox.SigningKeySecret, mailbox.SigningKeyKey, err)
		}
	}
	return nil
}

// unwritten is the message of the Event of a mailbox that cannot be written. A new leader does not resolve the Events of
// its predecessor, and repeats those that hold.
func (f *Facts) unwritten(events []corev1.Event) string {
	for i := range events {
		event := &events[i]
		if f.Leader != nil && f.Leader.Spec.AcquireTime != nil &&
			cluster.EventTime(event).Before(f.Leader.Spec.AcquireTime.Truncate(time.Second)) {
			continue
		}
		switch event.Reason {
		case relay.EventMailboxFailed:
			return event.Message
		case relay.EventMailboxWritten:
			return ""
		}
	}
	return ""
}
