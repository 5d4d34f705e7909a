// SPDX-License-Identifier: Apache-2.0

package mcsapi

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// markUnreadable is an annotation that only exists in memory: what an API server has under this key is dropped.
const markUnreadable = export.Domain + "/unreadable"

// Unreadable returns why the spec of a cached object could not be decoded, empty if it could. Of such an object only
// the metadata is known.
func Unreadable(object metav1.Object) string { return object.GetAnnotations()[markUnreadable] }

// tolerant decodes what a schema accepts and the Go types do not, such as the time "2026-01-01t00:00:00Z" in a
// condition. One such object must not keep all others from being read.
type tolerant struct{ runtime.NegotiatedSerializer }

// DecoderToVersion implements runtime.NegotiatedSerializer.
func (t tolerant) DecoderToVersion(decoder runtime.Decoder, version runtime.GroupVersioner) runtime.Decoder {
	return tolerantDecoder{t.NegotiatedSerializer.DecoderToVersion(decoder, version)}
}

type tolerantDecoder struct{ runtime.Decoder }

// Decode implements runtime.Decoder for objects and lists of objects in JSON.
func (d tolerantDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object,
	*schema.GroupVersionKind, error,
) {
	forged := bytes.Contains(data, []byte(markUnreadable))
	object, kind, err := d.Decoder.Decode(data, defaults, into)
	if err == nil && !forged {
		return object, kind, nil
	}
	readable, ok := d.readable(data)
	if !ok {
		return object, kind, err
	}
	if into != nil {
		reflect.ValueOf(into).Elem().SetZero() // of what the attempt before left
	}
	return d.Decoder.Decode(readable, defaults, into)
}

// readable returns the object, or the list of objects, without what cannot be decoded, and false if nothing of it is
// known.
func (d tolerantDecoder) readable(data []byte) ([]byte, bool) {
	var fields map[string]json.RawMessage
	var items []json.RawMessage
	var kind metav1.TypeMeta
	if json.Unmarshal(data, &fields) != nil || json.Unmarshal(data, &kind) != nil {
		return nil, false
	}
	if fields["items"] == nil {
		return d.readableObject(data, kind.GroupVersionKind())
	}
	if json.Unmarshal(fields["items"], &items) != nil {
		return nil, false
	}
	of := kind.GroupVersionKind()
	of.Kind = strings.TrimSuffix(of.Kind, "List")
	kept := items[:0]
	for _, item := range items {
		if item, ok := d.readableObject(item, of); ok {
			kept = append(kept, item)
		}
	}
	var err error
	if fields["items"], err = json.Marshal(kept); err != nil {
		return nil, false
	}
	list, err := json.Marshal(fields)
	return list, err == nil
}

// readableObject returns the object if it can be decoded. Else it returns the object without its status, which the
// controller writes itself, or if that cannot be decoded either its metadata alone, marked.
func (d tolerantDecoder) readableObject(data []byte, kind schema.GroupVersionKind) ([]byte, bool) {
	var fields map[string]any
	if json.Unmarshal(data, &fields) != nil {
		return nil, false
	}
	metadata, ok := fields["metadata"].(map[string]any)
	if !ok {
		return nil, false
	}
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		delete(annotations, markUnreadable)
	}
	decodes := func() ([]byte, error) {
		data, err := json.Marshal(fields)
		if err == nil {
			_, _, err = d.Decoder.Decode(data, &kind, nil)
		}
		return data, err
	}
	if data, err := decodes(); err == nil {
		return data, true
	}
	delete(fields, "status")
	data, err := decodes()
	if err == nil {
		return data, true
	}
	delete(fields, "spec")
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	annotations[markUnreadable] = err.Error()
	data, err = decodes()
	return data, err == nil
}
