// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	jsonType     = "application/json"
	protobufType = "application/vnd.kubernetes.protobuf"
)

var protobufSerializer = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)

// A format is the encoding and the version of objects in a response.
type format struct {
	kind     *kind
	protobuf bool
}

// formatOf picks the first format of an Accept header that the server supports. It has no tables: kubectl asks for them
// first, but accepts objects.
func formatOf(req *http.Request, k *kind) format {
	for _, each := range strings.Split(req.Header.Get("Accept"), ",") {
		if strings.HasPrefix(strings.TrimSpace(each), protobufType) && !k.custom() && k.Group != definitions.Group {
			return format{k, true}
		}
		if strings.HasPrefix(strings.TrimSpace(each), jsonType) {
			return format{k, false}
		}
	}
	return format{kind: k}
}

func (f format) contentType() string {
	if f.protobuf {
		return protobufType
	}
	return jsonType
}

// present returns an object as the client sees it: for a custom resource, a copy in the requested version.
func (f format) present(object runtime.Object) runtime.Object {
	if !f.kind.custom() {
		return object
	}
	custom := object.(*unstructured.Unstructured).DeepCopy()
	custom.SetGroupVersionKind(f.kind.GroupVersionKind)
	f.kind.prune(custom.Object)
	return custom
}

func (f format) encode(object runtime.Object) []byte {
	if f.protobuf {
		return need(runtime.Encode(protobufSerializer, object))
	}
	return need(json.Marshal(object))
}

// need returns a result that cannot fail: what is encoded was decoded before.
func need[T any](result T, err error) T {
	if err != nil {
		panic(err)
	}
	return result
}

// list encodes a list of objects at a revision.
func (f format) list(objects []runtime.Object, revision int64, next string) []byte {
	listMeta := metav1.ListMeta{ResourceVersion: strconv.FormatInt(revision, 10), Continue: next}
	items := make([]runtime.Object, len(objects))
	for i, each := range objects {
		items[i] = f.present(each)
	}
	if f.kind.custom() || f.kind.Group == definitions.Group {
		return need(json.Marshal(map[string]any{
			"apiVersion": f.kind.GroupVersion().String(), "kind": f.kind.Kind + "List", "metadata": listMeta,
			"items": items,
		}))
	}
	kind := f.kind.GroupVersion().WithKind(f.kind.Kind + "List")
	list := need(scheme.Scheme.New(kind))
	if err := meta.SetList(list, items); err != nil {
		panic(err)
	}
	accessor := need(meta.ListAccessor(list))
	accessor.SetResourceVersion(listMeta.ResourceVersion)
	accessor.SetContinue(next)
	list.GetObjectKind().SetGroupVersionKind(kind)
	return f.encode(list)
}

// frame encodes an event of a watch.
func (f format) frame(eventType string, object runtime.Object) []byte {
	raw := f.encode(object)
	if !f.protobuf {
		return fmt.Appendf(nil, "{\"type\":%q,\"object\":%s}\n", eventType, raw)
	}
	text := need((&metav1.WatchEvent{Type: eventType, Object: runtime.RawExtension{Raw: raw}}).Marshal())
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

// decode reads the object of a request in the stored form of the kind, or refuses it.
func decode(k *kind, body []byte) (object runtime.Object, failure *apierrors.StatusError) {
	var err error
	if k.custom() || k.Group == definitions.Group {
		custom := &unstructured.Unstructured{}
		err = custom.UnmarshalJSON(body)
		object = custom
	} else {
		object, _, err = codecs.UniversalDeserializer().Decode(body, &k.GroupVersionKind, nil)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	object.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	access(object).SetManagedFields(nil)
	if k.custom() {
		if problems := k.prune(object.(*unstructured.Unstructured).Object); len(problems) > 0 {
			failure = apierrors.NewInvalid(k.GroupKind(), access(object).GetName(), problems)
		}
	}
	return object, failure
}

func respond(req *http.Request, code int, contentType string, body []byte) *http.Response {
	return &http.Response{
		StatusCode: code, Status: strconv.Itoa(code) + " " + http.StatusText(code), Proto: "HTTP/2.0", ProtoMajor: 2,
		Request: req,
		Header:  http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
	}
}

// answer responds with an unchanged object, or with a refusal.
func (t *target) answer(req *http.Request, code int, object runtime.Object,
	failure *apierrors.StatusError,
) *http.Response {
	if failure != nil {
		return refuse(req, failure)
	}
	return respond(req, code, t.format.contentType(), t.format.encode(object))
}

// refuse responds with an error in the form of an API server.
func refuse(req *http.Request, err *apierrors.StatusError) *http.Response {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	response := respond(req, int(status.Code), jsonType, need(json.Marshal(&status)))
	if details := status.Details; details != nil && details.RetryAfterSeconds > 0 {
		response.Header.Set("Retry-After", strconv.Itoa(int(details.RetryAfterSeconds)))
	}
	return response
}
