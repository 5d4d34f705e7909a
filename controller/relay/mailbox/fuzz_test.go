// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// FuzzKeys: no text makes a parser of keys panic, and a list of keys is never empty nor too long.
func FuzzKeys(f *testing.F) {
	f.Add([]byte(privatePEM(f, key(1))))
	f.Add([]byte(publicPEM(f, key(1).Public()) + publicPEM(f, key(2).Public())))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = ParseSigningKey(text)
		if keys, err := ParsePublicKeys(text); err == nil && (len(keys) == 0 || len(keys) > maxKeys) {
			t.Errorf("%d keys", len(keys))
		}
	})
}

// FuzzVerify: no statement that the key did not sign is taken.
func FuzzVerify(f *testing.F) {
	record := recordOf(f, east, 5)
	lease, err := Lease(key(1), east, 9, &Ledger{}, heartbeatLease())
	if err != nil {
		f.Fatal(err)
	}
	signed, beat := record.Data[StatementKey], lease.Annotations[StatementAnnotation]
	f.Add(signed, record.BinaryData[SliceKey])
	f.Add(beat, []byte{})
	f.Fuzz(func(t *testing.T, statement string, encoded []byte) {
		changed := record.DeepCopy()
		changed.Data[StatementKey], changed.BinaryData[SliceKey] = statement, encoded
		if _, err := Verify(public(1), east, changed); err == nil && statement != signed {
			t.Errorf("takes %q", statement)
		}
		changedLease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{StatementAnnotation: statement},
		}}
		if _, err := VerifyLease(public(1), east, changedLease); err == nil && statement != beat {
			t.Errorf("takes %q", statement)
		}
	})
}

// FuzzSigned: a member that signs anything makes no reader panic.
func FuzzSigned(f *testing.F) {
	encoded, _ := Encode(published(east))
	f.Add(`{"version":1,"cluster":"east","counter":1,"namespace":"shop","name":"cart-east-1","sha256":""}`, encoded)
	f.Add(`{"version":1,"cluster":"east","counter":1,"root":"","renewed":1}`, encoded)
	name := types.NamespacedName{Namespace: "shop", Name: "cart-east-1"}
	f.Fuzz(func(t *testing.T, text string, encoded []byte) {
		for _, kind := range []kind{kindSlice, kindHeartbeat} {
			signed, err := sign(kind, key(1), rawJSON(text))
			if err != nil {
				continue
			}
			_, _ = Verify(public(1), east, &corev1.ConfigMap{Data: map[string]string{StatementKey: signed}})
			_, _ = VerifyLease(public(1), east, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
				Annotations: map[string]string{StatementAnnotation: signed},
			}})
		}
		record, err := ConfigMap(key(1), east, name, "cart", 1, encoded)
		if err != nil {
			t.Fatal(err)
		}
		is, err := Verify(public(1), east, record)
		if err != nil {
			return
		}
		if slice, err := is.Decode(east); err == nil && (slice.Name != name.Name || slice.ResourceVersion != "") {
			t.Errorf("decodes to %v", slice)
		}
	})
}

type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }
