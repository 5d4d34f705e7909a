// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"crypto/ed25519"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

var east = Source{Cluster: "east"}

func key(seed byte) ed25519.PrivateKey {
	all := make([]byte, ed25519.SeedSize)
	all[0] = seed
	return ed25519.NewKeyFromSeed(all)
}

func public(seeds ...byte) (keys []ed25519.PublicKey) {
	for _, seed := range seeds {
		keys = append(keys, key(seed).Public().(ed25519.PublicKey))
	}
	return keys
}

func published(source Source) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "cart-east-1", ResourceVersion: "7", UID: "u",
			Labels: map[string]string{
				export.LabelService: "cart", export.LabelSourceCluster: source.Cluster, "other": "x",
			},
			Annotations: map[string]string{export.AnnotationSnapshotPrefix + "v1": "{}", "other": "x"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{"10.0.0.1"}, NodeName: ptr.To("n"), Zone: ptr.To("a"),
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
		}},
		Ports: []discoveryv1.EndpointPort{{Port: ptr.To[int32](80)}},
	}
	source.Set.Mark(slice)
	return slice
}

func recordOf(t testing.TB, source Source, counter int64) *corev1.ConfigMap {
	slice := published(source)
	encoded, err := Encode(slice)
	if err != nil {
		t.Fatal(err)
	}
	record, err := ConfigMap(key(1), source, types.NamespacedName{Namespace: slice.Namespace, Name: slice.Name}, "cart",
		counter, encoded)
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// TestASliceArrivesAsAReaderKeepsIt: the verified slice is the published one without what members do not read.
func TestASliceArrivesAsAReaderKeepsIt(t *testing.T) {
	for _, source := range []Source{east, {Cluster: "east", Set: "prod"}} {
		record := recordOf(t, source, 5)
		is, err := Verify(public(2, 1), source, record)
		if err != nil {
			t.Fatal(err)
		}
		if is.Name.String() != "shop/cart-east-1" || is.Counter != 5 {
			t.Errorf("got %v", is)
		}
		got, err := is.Decode(source)
		if err != nil {
			t.Fatal(err)
		}
		want := export.Strip(published(source))
		want.UID, want.ResourceVersion = "", ""
		if !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		again, err := Encode(got)
		if err != nil || string(again) != string(is.Encoded) {
			t.Errorf("the encoded form of a decoded slice differs: %v", err)
		}
		if !source.Set.Manages(record) || record.Labels[export.LabelSourceCluster] != "east" {
			t.Errorf("labels %v", record.Labels)
		}
	}
}

// TestEncodeDependsOnContentOnly: what members do not read makes no difference, what they read does.
func TestEncodeDependsOnContentOnly(t *testing.T) {
	first, _ := Encode(published(east))
	slice := published(east)
	slice.ResourceVersion, slice.UID, slice.Generation, slice.CreationTimestamp = "8", "v", 2, metav1.Now()
	slice.Labels["other"], slice.Ports = "y", nil
	slice.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	for range 20 { // the order of maps
		if again, _ := Encode(slice); string(again) != string(first) {
			t.Fatal("the encoded form depends on fields that members do not read")
		}
	}
	slice.Endpoints[0].Addresses[0] = "10.0.0.2"
	if again, _ := Encode(slice); string(again) == string(first) {
		t.Error("another address makes no difference")
	}
	if slice.Ports = published(east).Ports; len(slice.ManagedFields) == 0 {
		t.Error("Encode changed the slice")
	}
}

// TestARelayCannotLie: a record that the relay changed, or took from elsewhere, is refused.
func TestARelayCannotLie(t *testing.T) {
	other := Source{Cluster: "west"}
	lease, err := Lease(key(1), east, 9, &Ledger{}, heartbeatLease())
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		change func(*corev1.ConfigMap)
		keys   []ed25519.PublicKey
		source Source
		want   error
	}{
		"another key":      {nil, public(2), east, ErrSignature},
		"no key":           {nil, nil, east, ErrSignature},
		"an empty key":     {nil, []ed25519.PublicKey{nil}, east, ErrSignature},
		"another cluster":  {nil, public(1), other, ErrSource},
		"another set":      {nil, public(1), Source{Cluster: "east", Set: "prod"}, ErrSource},
		"another slice":    {func(r *corev1.ConfigMap) { r.BinaryData[SliceKey][3] ^= 1 }, public(1), east, ErrMalformed},
		"no slice":         {func(r *corev1.ConfigMap) { r.BinaryData = nil }, public(1), east, ErrMalformed},
		"another name":     {func(r *corev1.ConfigMap) { r.Name = "x" }, public(1), east, ErrMalformed},
		"no statement":     {func(r *corev1.ConfigMap) { r.Data = nil }, public(1), east, ErrMalformed},
		"a long statement": {func(r *corev1.ConfigMap) { r.Data[StatementKey] += strings.Repeat(" ", 2048) }, public(1), east, ErrMalformed},
		"another counter": {func(r *corev1.ConfigMap) {
			r.Data[StatementKey] = strings.Replace(r.Data[StatementKey], `"counter":5`, `"counter":6`, 1)
		}, public(1), east, ErrSignature},
		"a heartbeat": {func(r *corev1.ConfigMap) {
			r.Data[StatementKey] = lease.Annotations[StatementAnnotation]
		}, public(1), east, ErrSignature},
	}
	for name, test := range tests {
		record := recordOf(t, east, 5)
		if test.change != nil {
			test.change(record)
		}
		if _, err := Verify(test.keys, test.source, record); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
	}
	lease.Annotations[StatementAnnotation] = recordOf(t, east, 5).Data[StatementKey]
	if _, err := VerifyLease(public(1), east, lease); !errors.Is(err, ErrSignature) {
		t.Errorf("a statement about a slice as a heartbeat: %v", err)
	}
}

// TestASourceCannotLieAboutItself: what is signed is refused too if it is not of the source, or of no known version.
func TestASourceCannotLieAboutItself(t *testing.T) {
	slice := published(east)
	name := types.NamespacedName{Namespace: "shop", Name: "cart-east-1"}
	decode := func(slice *discoveryv1.EndpointSlice, name types.NamespacedName) error {
		encoded, err := Encode(slice)
		if err != nil {
			t.Fatal(err)
		}
		record, err := ConfigMap(key(1), east, name, "cart", 1, encoded)
		if err != nil {
			t.Fatal(err)
		}
		is, err := Verify(public(1), east, record)
		if err != nil {
			return err
		}
		_, err = is.Decode(east)
		return err
	}
	if err := decode(slice, name); err != nil {
		t.Error(err)
	}
	if err := decode(slice, types.NamespacedName{Namespace: "shop", Name: "y"}); !errors.Is(err, ErrMalformed) {
		t.Errorf("another name: %v", err)
	}
	if err := decode(slice, types.NamespacedName{Name: "cart-east-1"}); !errors.Is(err, ErrMalformed) {
		t.Errorf("no namespace: %v", err)
	}
	for label, value := range map[string]string{export.LabelSourceCluster: "west", export.LabelSet: "prod"} {
		slice := published(east)
		slice.Labels[label] = value
		if err := decode(slice, name); !errors.Is(err, ErrSource) {
			t.Errorf("label %s: %v", label, err)
		}
	}
	for want, is := range map[error]header{
		ErrVersion:   {Version: 2, Source: east, Counter: 1},
		ErrMalformed: {Version: 1, Source: east},
	} {
		signed, err := sign(kindSlice, key(1), sliceStatement{header: is, Namespace: "shop", Name: "cart-east-1"})
		if err != nil {
			t.Fatal(err)
		}
		record := recordOf(t, east, 1)
		record.Data[StatementKey] = signed
		if _, err := Verify(public(1), east, record); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}

func heartbeatLease() *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "clusterset-dns", Name: HeartbeatLease, ResourceVersion: "12",
			Annotations: map[string]string{
				export.Domain + "/version": "v1", export.Domain + "/history": "a:1@1", "other": "x",
				StatementAnnotation: "x",
			},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("east"), LeaseDurationSeconds: ptr.To[int32](15),
			RenewTime: ptr.To(metav1.NewMicroTime(time.UnixMicro(1_700_000_000_123_456))),
		},
	}
}

// TestAHeartbeatArrivesAsMembersReadIt: the verified Lease has what members read, and the counter as resourceVersion.
func TestAHeartbeatArrivesAsMembersReadIt(t *testing.T) {
	var ledger Ledger
	ledger.Put(types.NamespacedName{Namespace: "shop", Name: "a"}, Entry{Counter: 3})
	record, err := Lease(key(1), east, 9, &ledger, heartbeatLease())
	if err != nil {
		t.Fatal(err)
	}
	is, err := VerifyLease(public(1), east, record)
	if err != nil {
		t.Fatal(err)
	}
	if is.Counter != 9 || is.Root != ledger.Root() {
		t.Errorf("got %v", is)
	}
	want := heartbeatLease()
	want.Namespace, want.ResourceVersion = "", "9"
	maps.DeleteFunc(want.Annotations, func(key, _ string) bool { return key == "other" || key == StatementAnnotation })
	if !equality.Semantic.DeepEqual(is.Lease, want) {
		t.Errorf("got %v, want %v", is.Lease, want)
	}
	if is.Lease.Spec.RenewTime.UnixMicro() != want.Spec.RenewTime.UnixMicro() {
		t.Error("the renewTime lost its microseconds, which the history has")
	}
	if _, err := VerifyLease(public(1), Source{Cluster: "west"}, record); !errors.Is(err, ErrSource) {
		t.Errorf("of another cluster: %v", err)
	}
	if _, err := Lease(key(1), east, 9, &ledger, &coordinationv1.Lease{}); err == nil {
		t.Error("a heartbeat without renewTime is no error")
	}
	long := heartbeatLease()
	long.Annotations[export.Domain+"/version"] = strings.Repeat("x", maxHeartbeatStatement)
	if _, err := Lease(key(1), east, 9, &ledger, long); err == nil {
		t.Error("a heartbeat that no reader takes is no error")
	}
}

func TestNextCounter(t *testing.T) {
	now := time.UnixMilli(1000)
	for highest, want := range map[int64]int64{0: 1000, 999: 1000, 1000: 1001, 5000: 5001} {
		if got := NextCounter(now, highest); got != want {
			t.Errorf("after %d: got %d, want %d", highest, got, want)
		}
	}
	if got := NextCounter(time.UnixMilli(-5), 0); got != 1 {
		t.Errorf("before 1970: got %d", got)
	}
}
