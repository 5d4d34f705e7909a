// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// ErrUndecodable is a list that could not be decoded as a whole.
var ErrUndecodable = errors.New("the API server's answer cannot be decoded")

// importObject is a ServiceImport as it is read: only its spec, and what DNS needs of its metadata. The schema of a CRD
// accepts what Go's types do not, such as a time of status.conditions that is no time of Go's. So an object that does
// not decode must not fail the list or the watch that it is in.
type importObject struct {
	mcsv1beta1.ServiceImport

	// undecodable is why the object could not be decoded. Its name and namespace are set nevertheless.
	undecodable error
}

// DeepCopyObject implements runtime.Object.
func (o *importObject) DeepCopyObject() runtime.Object { return o.DeepCopy() }

// DeepCopy copies all but the error, which is shared.
func (o *importObject) DeepCopy() *importObject {
	return &importObject{*o.ServiceImport.DeepCopy(), o.undecodable}
}

// UnmarshalJSON decodes an object of any of the import versions. It never fails.
func (o *importObject) UnmarshalJSON(data []byte) error {
	var fields struct {
		Metadata struct {
			Name            string            `json:"name"`
			Namespace       string            `json:"namespace"`
			ResourceVersion string            `json:"resourceVersion"`
			Labels          map[string]string `json:"labels"`
			Annotations     map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec mcsv1beta1.ServiceImportSpec `json:"spec"`
	}
	o.undecodable = utiljson.Unmarshal(data, &fields) // what does decode is set
	metadata := &fields.Metadata
	o.ObjectMeta = metav1.ObjectMeta{
		Name: metadata.Name, Namespace: metadata.Namespace, ResourceVersion: metadata.ResourceVersion,
		Labels: metadata.Labels, Annotations: metadata.Annotations,
	}
	o.Spec = fields.Spec
	return nil
}

// importList is a list of ServiceImports.
type importList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []importObject `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *importList) DeepCopyObject() runtime.Object {
	listMeta := l.ListMeta
	c := &importList{TypeMeta: l.TypeMeta, ListMeta: *listMeta.DeepCopy(), Items: make([]importObject, len(l.Items))}
	for i := range l.Items {
		c.Items[i] = *l.Items[i].DeepCopy()
	}
	return c
}
