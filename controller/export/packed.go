// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bytes"
	"fmt"

	"github.com/klauspost/compress/s2"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Packed is an EndpointSlice in little memory: encoded and compressed, and decoded each time that it is read. In a cache of
// client-go, each endpoint takes 34 to 62 B in slices of ten and 8 to 11 B in slices of a hundred. A decoded slice takes
// several times as much, in objects that each garbage collection visits: 511 clusters with 250,000 endpoints would not fit in
// 512 MiB. It is immutable.
type Packed struct {
	data []byte
	// endpoints is the number of endpoints, so that Open allocates room for all of them at once.
	endpoints int32
}

var _ metav1.ObjectMetaAccessor = (*Packed)(nil)

// Pack packs the current state of a slice.
func Pack(slice *discoveryv1.EndpointSlice) *Packed {
	encoded, err := slice.Marshal()
	if err != nil {
		panic(fmt.Sprintf("export: EndpointSlice %s/%s cannot be encoded: %v", slice.Namespace, slice.Name, err))
	}
	return &Packed{data: bytes.Clone(dictionary.Encode(nil, encoded)), endpoints: int32(len(slice.Endpoints))}
}

func (s *Packed) encoded() []byte {
	encoded, err := dictionary.Decode(nil, s.data)
	if err != nil {
		panic(fmt.Sprintf("export: an EndpointSlice cannot be decompressed: %v", err))
	}
	return encoded
}

// Open returns the slice as a new object, which the caller may change.
func (s *Packed) Open() *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{}
	if s.endpoints > 0 {
		slice.Endpoints = make([]discoveryv1.Endpoint, 0, s.endpoints)
	}
	if err := slice.Unmarshal(s.encoded()); err != nil {
		panic(fmt.Sprintf("export: an encoded EndpointSlice cannot be decoded: %v", err))
	}
	return slice
}

// Equal reports whether two slices are equal, including their resourceVersions.
func (s *Packed) Equal(other *Packed) bool { return bytes.Equal(s.data, other.data) }

// GetObjectMeta implements metav1.ObjectMetaAccessor, so that caches of client-go can hold slices. It returns a new slice with
// nothing but its metadata, which costs less than Open.
func (s *Packed) GetObjectMeta() metav1.Object {
	var partial metav1.PartialObjectMetadata // metadata is the first field of both
	if err := partial.Unmarshal(s.encoded()); err != nil {
		panic(fmt.Sprintf("export: the metadata of an encoded EndpointSlice cannot be decoded: %v", err))
	}
	return &discoveryv1.EndpointSlice{ObjectMeta: partial.ObjectMeta}
}

// PackSlice is a cache.TransformFunc that packs EndpointSlices, without their managed fields. It empties what it packs,
// because client-go keeps references to a list while it is cached.
func PackSlice(object any) (any, error) {
	slice, ok := object.(*discoveryv1.EndpointSlice)
	if !ok {
		return object, nil
	}
	slice.ManagedFields = nil
	packed := Pack(slice)
	*slice = discoveryv1.EndpointSlice{}
	return packed, nil
}

// OpenAll opens all slices.
func OpenAll(all []*Packed) []*discoveryv1.EndpointSlice {
	opened := make([]*discoveryv1.EndpointSlice, 0, len(all))
	for _, each := range all {
		opened = append(opened, each.Open())
	}
	return opened
}

// EncodedSize returns the size in bytes of all slices before compression, which bounds what OpenAll allocates only roughly. It
// decodes nothing.
func EncodedSize(all []*Packed) (size int) {
	for _, each := range all {
		length, _ := s2.DecodedLen(each.data) // it was encoded by Pack
		size += length
	}
	return size
}

// dictionary has what most encoded slices have in common. Packed slices exist only in memory, so each version of the
// program may have its own dictionary.
var dictionary = s2.MakeDict([]byte("ZX\n&endpointslice.kubernetes.io/managed-by\x12.clusterset-controller.clusterset-dns.github.io"+
	"Z0\n\x1akubernetes.io/service-name\x12\x12derived-0123456789Z\"\n\x1eservice.kubernetes.io/headless\x12\x00"+
	"Z.\n'multicluster.kubernetes.io/service-name\x12\x03webZ6\n)multicluster.kubernetes.io/source-cluster\x12\tcluster-1"+
	"bS\n1clusterset-dns.github.io/last-change-trigger-time\x12\x1e2026-01-01T00:00:00.000000000Z"+
	"b\xe2\x02\n$snapshot.clusterset-dns.github.io/v1\x12\xb9\x02"+
	`{"cluster":"cluster-1","service":{"created":"2026-01-01T00:00:00Z","type":"ClusterSetIP","ports":[{"name":"http",`+
	`"protocol":"TCP","port":80}],"ipFamilies":["IPv4"],"sessionAffinity":"None","internalTrafficPolicy":"Cluster"},`+
	`"slice":{"name":"web-abcdefghij","targets":[{"protocol":"TCP","port":80,"target":8080}]}}`+
	"j[\n\rServiceImport\x1a\x03web\"$8f9c2b1e-7d53-4a60-9e18-c0f4a6b2d375*\x1dmulticluster.x-k8s.io/v1beta10\x01"+
	"\x12\"\n\b10.0.0.1\x12\x06\b\x01\x10\x01\x18\x00\x1a\x05web-1:\azone-1a\x12\"\n\b10.0.0.2\x12\x06\b\x01\x10\x01\x18\x00"+
	"\x1a\x0e\n\x04http\x12\x03TCP\x18\x90?\"\x04IPv4"), nil)
