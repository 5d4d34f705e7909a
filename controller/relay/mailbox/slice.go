// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// MaxSlice bounds an encoded slice, in bytes: no API server stores larger ConfigMaps.
const MaxSlice = 1<<20 - 8<<10

// sliceStatement is the signed statement about a slice.
type sliceStatement struct {
	header
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Digest    Digest `json:"sha256"`
}

// A Slice is a verified slice of a mailbox.
type Slice struct {
	// Name is the namespace and name of the slice in its cluster.
	Name types.NamespacedName
	Entry
	// Encoded is the slice in protobuf, not decoded yet.
	Encoded []byte
}

// Encode returns a published slice as a reader keeps it, in protobuf: the same bytes for the same content, whatever its
// resourceVersion is. It does not change the slice.
func Encode(slice *discoveryv1.EndpointSlice) ([]byte, error) {
	stripped := export.Strip(slice.DeepCopy())
	stripped.ObjectMeta = metav1.ObjectMeta{
		Namespace: stripped.Namespace, Name: stripped.Name,
		Labels: stripped.Labels, Annotations: stripped.Annotations,
	}
	encoded, err := stripped.Marshal()
	if err != nil {
		return nil, fmt.Errorf("encode EndpointSlice %s/%s: %w", slice.Namespace, slice.Name, err)
	}
	if len(encoded) > MaxSlice {
		return nil, fmt.Errorf("%w: EndpointSlice %s/%s has %d bytes, and a relay stores at most %d", ErrTooLarge,
			slice.Namespace, slice.Name, len(encoded), MaxSlice)
	}
	return encoded, nil
}

// ConfigMap returns the record of an encoded slice, without a namespace. service is its service, for administrators.
func ConfigMap(
	key ed25519.PrivateKey, source Source, name types.NamespacedName, service string, counter int64, encoded []byte,
) (*corev1.ConfigMap, error) {
	statement, err := sign(kindSlice, key, sliceStatement{
		header:    header{Version: version, Source: source, Counter: counter},
		Namespace: name.Namespace, Name: name.Name, Digest: sha256.Sum256(encoded),
	})
	if err != nil {
		return nil, err
	}
	record := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: RecordName(name), Labels: map[string]string{
			export.LabelSourceCluster: source.Cluster, export.LabelService: service,
		}},
		Data:       map[string]string{StatementKey: statement},
		BinaryData: map[string][]byte{SliceKey: encoded},
	}
	source.Set.Mark(record)
	return record, nil
}

// Verify returns the slice of a record, if the source has signed it with one of the keys. The caller bounds what
// decoding it takes before it calls Decode.
func Verify(keys []ed25519.PublicKey, source Source, record *corev1.ConfigMap) (*Slice, error) {
	statement, err := verify[sliceStatement](kindSlice, maxSliceStatement, keys, source, record.Data[StatementKey])
	if err != nil {
		return nil, err
	}
	name := types.NamespacedName{Namespace: statement.Namespace, Name: statement.Name}
	encoded := record.BinaryData[SliceKey]
	switch {
	case len(encoded) > MaxSlice:
		return nil, fmt.Errorf("%w: the slice has %d bytes", ErrMalformed, len(encoded))
	case statement.Digest != sha256.Sum256(encoded):
		return nil, fmt.Errorf("%w: the slice is not the one that was signed", ErrMalformed)
	case name.Namespace == "" || name.Name == "" || record.Name != RecordName(name):
		return nil, fmt.Errorf("%w: the ConfigMap has the name of another slice than %s", ErrMalformed, name)
	}
	return &Slice{
		Name: name, Entry: Entry{Counter: statement.Counter, Digest: statement.Digest}, Encoded: encoded,
	}, nil
}

// Decode returns the slice as a new object with the content that a reader keeps. It has no resourceVersion.
func (s *Slice) Decode(source Source) (*discoveryv1.EndpointSlice, error) {
	slice := &discoveryv1.EndpointSlice{}
	if err := slice.Unmarshal(s.Encoded); err != nil {
		return nil, fmt.Errorf("%w EndpointSlice: %w", ErrMalformed, err)
	}
	switch {
	case slice.Namespace != s.Name.Namespace || slice.Name != s.Name.Name:
		return nil, fmt.Errorf("%w: the EndpointSlice has the name of another", ErrMalformed)
	case slice.Labels[export.LabelSourceCluster] != source.Cluster,
		slice.Labels[export.LabelSet] != string(source.Set):
		return nil, fmt.Errorf("%w: the labels of the EndpointSlice are those of another cluster", ErrSource)
	}
	slice = export.Strip(slice)
	slice.ObjectMeta = metav1.ObjectMeta{
		Namespace: slice.Namespace, Name: slice.Name, Labels: slice.Labels, Annotations: slice.Annotations,
	}
	return slice, nil
}
