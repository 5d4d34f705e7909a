// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/s2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// A Packed is an EndpointSlice in little memory: encoded and compressed, and decoded each time that it is read. In a cache of
// client-go, each endpoint takes 33 to 61 B in slices of ten and 8 to 11 B in slices of a hundred. A decoded slice takes
// several times as much, in objects that each garbage collection visits: 511 clusters with 250,000 endpoints would not fit in
// 512 MiB. It is immutable.
type Packed struct {
	data []byte
	// endpoints is their number, so that Open makes room for all of them at once.
	endpoints int32
}

var _ metav1.ObjectMetaAccessor = (*Packed)(nil)

// Pack returns a slice as it is now.
func Pack(slice *discoveryv1.EndpointSlice) *Packed {
	plain, compressed := takeBuffer(), takeBuffer()
	defer buffers.Put(plain)
	defer buffers.Put(compressed)
	size := slice.Size()
	*plain = slices.Grow((*plain)[:0], size)[:size]
	if _, err := slice.MarshalToSizedBuffer(*plain); err != nil {
		panic(fmt.Sprintf("export: EndpointSlice %s/%s cannot be encoded: %v", slice.Namespace, slice.Name, err))
	}
	*compressed = dictionary().Encode(*compressed, *plain)
	return &Packed{data: bytes.Clone(*compressed), endpoints: int32(len(slice.Endpoints))}
}

// encoded calls read with the encoded slice, which read does not keep.
func (s *Packed) encoded(read func([]byte)) {
	buffer := takeBuffer()
	defer buffers.Put(buffer)
	encoded, err := dictionary().Decode(*buffer, s.data)
	if err != nil {
		panic(fmt.Sprintf("export: an EndpointSlice cannot be decompressed: %v", err))
	}
	*buffer = encoded
	read(encoded)
}

// Open returns the slice as a new object, which the caller may change.
func (s *Packed) Open() *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{}
	if s.endpoints > 0 {
		slice.Endpoints = make([]discoveryv1.Endpoint, 0, s.endpoints)
	}
	s.encoded(func(encoded []byte) {
		if err := slice.Unmarshal(encoded); err != nil {
			panic(fmt.Sprintf("export: an encoded EndpointSlice cannot be decoded: %v", err))
		}
	})
	return slice
}

// Encoded returns the size in bytes before compression, which bounds what Open allocates only roughly. It decodes
// nothing.
func (s *Packed) Encoded() int {
	length, err := s2.DecodedLen(s.data)
	if err != nil {
		panic(fmt.Sprintf("export: an EndpointSlice has no length: %v", err))
	}
	return length
}

// Equal reports whether two slices are the same in all, their resourceVersions too.
func (s *Packed) Equal(other *Packed) bool { return bytes.Equal(s.data, other.data) }

// OpenMetadata returns the slice with nothing but its metadata, which costs less than Open.
func (s *Packed) OpenMetadata() *discoveryv1.EndpointSlice {
	var partial metav1.PartialObjectMetadata // metadata is its first field, too
	s.encoded(func(encoded []byte) {
		if err := partial.Unmarshal(encoded); err != nil {
			panic(fmt.Sprintf("export: the metadata of an encoded EndpointSlice cannot be decoded: %v", err))
		}
	})
	return &discoveryv1.EndpointSlice{ObjectMeta: partial.ObjectMeta}
}

// GetObjectMeta implements metav1.ObjectMetaAccessor, so that caches of client-go can hold slices. It is a new object.
func (s *Packed) GetObjectMeta() metav1.Object { return s.OpenMetadata() }

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

// EncodedSize returns the Encoded size of all slices.
func EncodedSize(all []*Packed) (size int) {
	for _, each := range all {
		size += each.Encoded()
	}
	return size
}

// dictionary is what most slices have in common. It is only in memory: another one may replace it at any time.
var dictionary = sync.OnceValue(func() *s2.Dict {
	encoded, err := example().Marshal()
	if err != nil {
		panic(fmt.Sprintf("export: the example cannot be encoded: %v", err))
	}
	return s2.MakeDict(encoded, nil)
})

// example is a slice as this controller writes it. Its values do not matter: they only fill the dictionary.
func example() *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-cluster-1-abcdefghij", Namespace: "default", UID: "8f9c2b1e-7d53-4a60-9e18-c0f4a6b2d375",
			ResourceVersion: "1000000", Generation: 1, CreationTimestamp: metav1.Unix(1.7e9, 0),
			Labels: map[string]string{
				"endpointslice.kubernetes.io/managed-by": "clusterset-controller.clusterset-dns.github.io",
				"kubernetes.io/service-name":             "derived-0123456789", "service.kubernetes.io/headless": "",
				"multicluster.kubernetes.io/service-name":   "web",
				"multicluster.kubernetes.io/source-cluster": "cluster-1",
			},
			Annotations: map[string]string{
				"clusterset-dns.github.io/last-change-trigger-time": "2026-01-01T00:00:00.000000000Z",
				"snapshot.clusterset-dns.github.io/v1": `{"cluster":"cluster-1","service":{"created":` +
					`"2026-01-01T00:00:00Z","type":"ClusterSetIP","ports":[{"name":"http","protocol":"TCP","port":80}],` +
					`"ipFamilies":["IPv4"],"sessionAffinity":"None","internalTrafficPolicy":"Cluster"},"slice":{"name":` +
					`"web-abcdefghij","targets":[{"protocol":"TCP","port":80,"target":8080}]}}`,
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "multicluster.x-k8s.io/v1beta1", Kind: "ServiceImport", Name: "web",
				UID: "8f9c2b1e-7d53-4a60-9e18-c0f4a6b2d375", Controller: ptr.To(true),
			}},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{
			{Name: ptr.To("http"), Protocol: ptr.To[corev1.Protocol]("TCP"), Port: ptr.To[int32](8080)},
		},
	}
	for _, address := range []string{"10.0.0.1", "10.0.0.2"} {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address}, Hostname: ptr.To("web-1"), Zone: ptr.To("zone-1a"),
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true), Serving: ptr.To(true), Terminating: ptr.To(false)},
		})
	}
	return slice
}

// buffers are scratch memory, each a pointer to bytes.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

func takeBuffer() *[]byte {
	taken, _ := buffers.Get().(*[]byte)
	return taken
}
