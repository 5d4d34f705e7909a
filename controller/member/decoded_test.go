// SPDX-License-Identifier: Apache-2.0

package member

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// empties is a page with a slice of count empty endpoints.
func empties(count int) *discoveryv1.EndpointSliceList {
	return &discoveryv1.EndpointSliceList{Items: []discoveryv1.EndpointSlice{{Endpoints: make([]discoveryv1.Endpoint,
		count)}}}
}

// padded is an encoded object, padded to length bytes with an unknown field.
func padded(object string, length int) string {
	const number = 1000
	for fill := max(0, length-len(object)-8); ; fill++ {
		field := protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType),
			strings.Repeat("x", fill))
		if len(object)+len(field) >= length || length == 0 {
			return (object + string(field))[:length]
		}
	}
}

// ordinary is a page of 100 slices of 100 endpoints, as pods have them.
func ordinary() *discoveryv1.EndpointSliceList {
	one := slice("web-east-1", "web", "1")
	one.OwnerReferences = []metav1.OwnerReference{{Kind: "ServiceExport", Name: "web"}}
	one.Endpoints = slices.Repeat([]discoveryv1.Endpoint{{
		Addresses: []string{"10.64.10.10"}, Conditions: export.Conditions(true, true, false), NodeName: ptr.To("node-1"), Zone: ptr.To("zone-1"),
	}}, 100)
	return &discoveryv1.EndpointSliceList{Items: slices.Repeat([]discoveryv1.EndpointSlice{*one}, 100)}
}

// TestWhatAnAnswerUnfolds: a short response that would take much memory is refused before it is decoded, and so is a response
// of another kind.
func TestWhatAnAnswerUnfolds(t *testing.T) {
	const many = 1 << 18
	one := func(slice discoveryv1.EndpointSlice) *discoveryv1.EndpointSliceList {
		return &discoveryv1.EndpointSliceList{Items: []discoveryv1.EndpointSlice{slice}}
	}
	about := func(about metav1.ObjectMeta) *discoveryv1.EndpointSliceList {
		return one(discoveryv1.EndpointSlice{ObjectMeta: about})
	}
	heartbeat := coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("east")}}
	addresses := []discoveryv1.Endpoint{{Addresses: make([]string, 4*many)}}
	for name, object := range map[string]apiruntime.Object{
		"nothing":            &discoveryv1.EndpointSliceList{},
		"an ordinary page":   ordinary(),
		"a heartbeat":        &coordinationv1.LeaseList{Items: []coordinationv1.Lease{heartbeat}},
		"empty slices":       &discoveryv1.EndpointSliceList{Items: make([]discoveryv1.EndpointSlice, many/2)},
		"empty Leases":       &coordinationv1.LeaseList{Items: make([]coordinationv1.Lease, many/2)},
		"empty endpoints":    empties(many),
		"empty in an event":  &empties(many).Items[0],
		"empty ports":        one(discoveryv1.EndpointSlice{Ports: make([]discoveryv1.EndpointPort, many)}),
		"empty addresses":    one(discoveryv1.EndpointSlice{Endpoints: addresses}),
		"empty owners":       about(metav1.ObjectMeta{OwnerReferences: make([]metav1.OwnerReference, many)}),
		"empty field owners": about(metav1.ObjectMeta{ManagedFields: make([]metav1.ManagedFieldsEntry, many)}),
		"empty finalizers":   about(metav1.ObjectMeta{Finalizers: make([]string, 4*many)}),
		"empty audiences":    &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: make([]string, 4*many)}},
	} {
		encoded, tooLarge := encode(t, object), strings.HasPrefix(name, "empty ")
		if len(encoded) > maxAnswer {
			t.Fatalf("%s has %d bytes", name, len(encoded))
		}
		into := reflect.New(reflect.TypeOf(object).Elem()).Interface().(interface{ Unmarshal([]byte) error })
		if err := decode(encoded, into); errors.Is(err, errTooLarge) != tooLarge || !tooLarge && err != nil {
			t.Errorf("%s: %d bytes: %v", name, len(encoded), err)
		}
	}
	object := func(version, kind, raw string) []byte {
		encoded, err := (&apiruntime.Unknown{TypeMeta: apiruntime.TypeMeta{APIVersion: version, Kind: kind}, Raw: []byte(raw)}).Marshal()
		must(t, err)
		return append(slices.Clone(protobufPrefix), encoded...)
	}
	pods := object("v1", "PodList", strings.Repeat("\x12\x00", many))
	if err := decode(pods, &metav1.Status{}); err == nil || !strings.Contains(err.Error(), `"PodList" in "v1" instead of Status`) {
		t.Errorf("a list of pods: %v", err)
	}
	for _, malformed := range [][]byte{[]byte("{}"), pods[:len(pods)-1], object("v1", "Status", "\x0a\xff"), object("v1", "Status", "\x0a\x00\x08\x01")} {
		if err := decode(malformed, &metav1.Status{}); !errors.Is(err, errMalformed) {
			t.Errorf("%.20q: %v", malformed, err)
		}
	}
}

// FuzzDecode: what client-go decodes as an object of a known kind is not malformed.
func FuzzDecode(f *testing.F) {
	f.Add(encode(f, empties(2)))
	f.Add(encode(f, &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("east")}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		err := decode(data, &discoveryv1.EndpointSlice{})
		_ = decode(data, &coordinationv1.LeaseList{}) // neither it nor events may panic
		_ = events(bytes.NewReader(data), maxOther, func(event metav1.WatchEvent) error {
			return decode(event.Object.Raw, &discoveryv1.EndpointSlice{})
		})
		object, decodeErr := apiruntime.Decode(scheme.Codecs.UniversalDeserializer(), data)
		if _, isSlice := object.(*discoveryv1.EndpointSlice); decodeErr == nil && isSlice &&
			errors.Is(err, errMalformed) {
			t.Errorf("%q is decoded, and refused: %v", data, err)
		}
	})
}
