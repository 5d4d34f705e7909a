// SPDX-License-Identifier: Apache-2.0

package member

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/runtime"
)

// maxDecoded bounds the memory of one decoded response or watch event, in bytes, without its strings and without the spare
// capacity of lists, which takes about as much again. A page of 100 slices of 100 endpoints takes at most two thirds. Bounding
// the encoded bytes is not enough: an empty list element has two, and takes hundreds in memory.
const maxDecoded = 4 << 20

// protobufPrefix precedes each object that an API server encodes.
var protobufPrefix = []byte("k8s\x00")

var errMalformed = errors.New("the answer is no object in the protobuf form of Kubernetes")

// An object is an API object with generated protobuf code.
type object interface{ Unmarshal(data []byte) error }

// A field describes a protobuf field. size is the memory in bytes of each occurrence, without its own fields.
type field struct {
	size   int
	fields map[protowire.Number]field // nil for a scalar field
}

// mapEntry is about the size of an entry of a map of strings, without the strings.
const mapEntry = 100

// described has a function for each type, which caches the result of describe.
var described sync.Map

// describe reads field numbers from the struct tags of generated code. The types have no cycles.
func describe(of reflect.Type) field {
	is := field{fields: map[protowire.Number]field{}}
	for i := range of.NumField() {
		tag := strings.Split(of.Field(i).Tag.Get("protobuf"), ",")
		if len(tag) < 2 {
			continue
		}
		number, err := strconv.Atoi(tag[1])
		if err != nil {
			panic(fmt.Sprintf("%s.%s has the tag %q", of, of.Field(i).Name, tag))
		}
		has, size := of.Field(i).Type, 0
		switch has.Kind() {
		case reflect.Map:
			size = mapEntry
		case reflect.Slice, reflect.Pointer:
			has = has.Elem()
			size = int(has.Size())
		}
		var f field
		if has.Kind() == reflect.Struct {
			f = describe(has)
		}
		f.size = size
		is.fields[protowire.Number(number)] = f
	}
	return is
}

// decode decodes an object as an API server encodes it. It returns an error for an object of another kind. An object that
// exceeds maxDecoded is not decoded: it returns errTooLarge.
func decode(data []byte, into object) error {
	data, ok := bytes.CutPrefix(data, protobufPrefix)
	var encoded runtime.Unknown
	if !ok || encoded.Unmarshal(data) != nil {
		return errMalformed
	}
	of, room := reflect.TypeOf(into).Elem(), maxDecoded
	if encoded.Kind != of.Name() {
		return fmt.Errorf("the API server answers with an object of the kind %.100q in %.100q instead of %s", encoded.Kind,
			encoded.APIVersion, of.Name())
	}
	is, _ := described.LoadOrStore(of, sync.OnceValue(func() field { return describe(of) }))
	if err := is.(func() field)().take(encoded.Raw, &room); err != nil {
		return err
	}
	if into.Unmarshal(encoded.Raw) != nil {
		return errMalformed
	}
	return nil
}

// take subtracts the memory of a message from room.
func (f field) take(data []byte, room *int) error {
	for len(data) > 0 {
		number, kind, start := protowire.ConsumeTag(data)
		if start < 0 {
			return errMalformed
		}
		length := protowire.ConsumeFieldValue(number, kind, data[start:])
		if length < 0 {
			return errMalformed
		}
		is := f.fields[number]
		if *room -= is.size; *room < 0 {
			return fmt.Errorf("%w: it takes more than %d bytes once it is decoded", errTooLarge, maxDecoded)
		}
		if is.fields != nil && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(data[start:])
			if err := is.take(value, room); err != nil {
				return err
			}
		}
		data = data[start+length:]
	}
	return nil
}
