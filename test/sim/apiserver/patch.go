// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
)

// patch merges JSON into an object (RFC 7386). What strategic merge patches do beyond that is not modeled.
func (s *Server) patch(t *target, body []byte) (runtime.Object, *apierrors.StatusError) {
	old, failure := s.existing(t)
	if failure != nil {
		return nil, failure
	}
	var value, change map[string]any
	plain := format{kind: t.kind}
	if err := errors.Join(json.Unmarshal(plain.encode(plain.present(old)), &value),
		json.Unmarshal(body, &change)); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	mergePatch(value, change)
	text, err := json.Marshal(value)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	object, failure := decode(t.kind, text)
	if failure != nil {
		return nil, failure
	}
	return s.replace(t, object)
}

func mergePatch(value, change map[string]any) {
	for key, each := range change {
		nested, isObject := each.(map[string]any)
		switch {
		case each == nil:
			delete(value, key)
		case isObject:
			old, wasObject := value[key].(map[string]any)
			if !wasObject {
				old = map[string]any{}
			}
			mergePatch(old, nested)
			value[key] = old
		default:
			value[key] = each
		}
	}
}
