// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/ptr"
)

// patch changes an object with a JSON merge patch (RFC 7386), with a strategic merge patch if the resource is built-in,
// or with a server-side apply of one manager in JSON, which is modeled as one of these patches that may create the object and,
// if the resource is built-in, removes what was applied before.
func (s *Server) patch(t *target, body []byte) (_ runtime.Object, failure *apierrors.StatusError) {
	old, missing := s.existing(t)
	plain, typed := format{kind: t.kind}, t.kind.empty()
	_, custom := typed.(*unstructured.Unstructured)
	if types.PatchType(t.media) == types.ApplyYAMLPatchType {
		given, id := body, fmt.Sprint(t.Resource, t.Namespace, t.name)
		defer func() {
			if failure == nil {
				s.applied[id] = given
			}
		}()
		if missing != nil {
			return s.create(t, body)
		}
		if !custom {
			schema, err1 := strategicpatch.NewPatchMetaFromStruct(typed)
			merged, err2 := strategicpatch.CreateThreeWayMergePatch(s.applied[id], given, plain.encode(plain.present(old)), schema, true)
			if err := errors.Join(err1, err2); err != nil {
				return nil, apierrors.NewBadRequest(err.Error())
			}
			body = merged
		}
	}
	if missing != nil {
		return nil, missing
	}
	text := plain.encode(plain.present(old))
	var err error
	if custom || types.PatchType(t.media) == types.MergePatchType {
		text, err = jsonpatch.MergePatch(text, body)
	} else {
		text, err = strategicpatch.StrategicMergePatch(text, body, typed)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	object, failure := decode(t.kind, text)
	if failure != nil {
		return nil, failure
	}
	return s.replace(t, object)
}

// scale reads or changes the number of pods of a workload.
func (s *Server) scale(t *target, body []byte) (runtime.Object, *apierrors.StatusError) {
	old, failure := s.existing(t)
	if failure != nil {
		return nil, failure
	}
	object := old.DeepCopyObject()
	replicas, selector := new(*int32), &metav1.LabelSelector{}
	switch workload := object.(type) {
	case *appsv1.Deployment:
		replicas, selector = &workload.Spec.Replicas, workload.Spec.Selector
	case *appsv1.StatefulSet:
		replicas, selector = &workload.Spec.Replicas, workload.Spec.Selector
	}
	if t.Verb != "get" {
		wanted := autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: ptr.Deref(*replicas, 1)}}
		if err := json.Unmarshal(body, &wanted); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		*replicas = &wanted.Spec.Replicas
		if object, failure = s.replace(t, object); failure != nil {
			return nil, failure
		}
	}
	m := access(object)
	return &autoscalingv1.Scale{
		TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"},
		ObjectMeta: metav1.ObjectMeta{Name: m.GetName(), Namespace: m.GetNamespace(), ResourceVersion: m.GetResourceVersion()},
		Spec:       autoscalingv1.ScaleSpec{Replicas: ptr.Deref(*replicas, 1)},
		Status:     autoscalingv1.ScaleStatus{Selector: metav1.FormatLabelSelector(selector)},
	}, nil
}
