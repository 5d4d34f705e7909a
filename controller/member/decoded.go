// SPDX-License-Identifier: Apache-2.0

package member

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// maxDecoded bounds the memory of one decoded response or watch event, in bytes, without its strings and without the
// growth of lists, which takes about as much again. A page of 100 slices of 100 ordinary endpoints takes at most two
// thirds of it. Bounding the encoded bytes is not enough: two bytes can be an empty list element, which takes hundreds.
const maxDecoded = 4 << 20

// protobufPrefix precedes each object that an API server encodes.
var protobufPrefix = []byte("k8s\x00")

// kinds are the objects that a member may answer with. The decoder would accept any kind that an object claims.
var kinds = map[string]*message{
	"discovery.k8s.io/v1 EndpointSliceList": messageOf[discoveryv1.EndpointSliceList](),
	"discovery.k8s.io/v1 EndpointSlice":     messageOf[discoveryv1.EndpointSlice](),
	"coordination.k8s.io/v1 LeaseList":      messageOf[coordinationv1.LeaseList](),
	"coordination.k8s.io/v1 Lease":          messageOf[coordinationv1.Lease](),
	"authentication.k8s.io/v1 TokenRequest": messageOf[authenticationv1.TokenRequest](), // see renewToken
	"v1 Status":                             messageOf[metav1.Status](),
}

var errMalformed = errors.New("the answer is no object in the protobuf form of Kubernetes")

// A message has the memory that each occurrence of a field takes.
type message struct{ fields map[protowire.Number]field }

type field struct {
	size int
	of   *message // nil for a scalar field
}

// mapEntry is about the size of an entry of a map of strings, without the strings.
const mapEntry = 100

func messageOf[T any]() *message { return describe(reflect.TypeFor[T]()) }

// describe reads field numbers from the struct tags of generated code. The types have no cycles.
func describe(of reflect.Type) *message {
	m := &message{map[protowire.Number]field{}}
	for i := range of.NumField() {
		tag := strings.Split(of.Field(i).Tag.Get("protobuf"), ",")
		if len(tag) < 2 {
			continue
		}
		number, err := strconv.Atoi(tag[1])
		if err != nil {
			panic(fmt.Sprintf("%s.%s has the tag %q", of, of.Field(i).Name, tag))
		}
		is, f := of.Field(i).Type, field{}
		switch is.Kind() {
		case reflect.Map:
			f.size = mapEntry
		case reflect.Slice, reflect.Pointer:
			is = is.Elem()
			f.size = int(is.Size())
		}
		if is.Kind() == reflect.Struct {
			f.of = describe(is)
		}
		m.fields[protowire.Number(number)] = f
	}
	return m
}

// checkObject returns an error if an encoded object is of an unexpected kind, and errTooLarge if it exceeds maxDecoded.
func checkObject(data []byte) error {
	data, ok := bytes.CutPrefix(data, protobufPrefix)
	var object runtime.Unknown // what the decoder reads first, too
	if !ok || object.Unmarshal(data) != nil {
		return errMalformed
	}
	of, ok := kinds[object.APIVersion+" "+object.Kind]
	if !ok {
		return fmt.Errorf("the API server answers with an object of the kind %.100q in %.100q, which it was not asked for",
			object.Kind, object.APIVersion)
	}
	room := maxDecoded
	return of.take(object.Raw, &room)
}

// checkEvent calls checkObject for the object in a watch event.
func checkEvent(data []byte) error {
	var event metav1.WatchEvent
	if event.Unmarshal(data) != nil {
		return errMalformed
	}
	if len(event.Object.Raw) == 0 {
		return nil
	}
	return checkObject(event.Object.Raw)
}

// take subtracts the memory of a message from room.
func (m *message) take(data []byte, room *int) error {
	return each(data, func(number protowire.Number, value []byte) error {
		f := m.fields[number]
		if *room -= f.size; *room < 0 {
			return fmt.Errorf("%w: it takes more than %d bytes once it is decoded", errTooLarge, maxDecoded)
		}
		if f.of == nil {
			return nil
		}
		return f.of.take(value, room)
	})
}

// each calls do with each field of a message; value is nil for fields without a length.
func each(data []byte, do func(protowire.Number, []byte) error) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return errMalformed
		}
		data = data[n:]
		length := protowire.ConsumeFieldValue(number, kind, data)
		if length < 0 {
			return errMalformed
		}
		var value []byte
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(data)
		}
		if err := do(number, value); err != nil {
			return err
		}
		data = data[length:]
	}
	return nil
}
