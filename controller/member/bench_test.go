// SPDX-License-Identifier: Apache-2.0

package member

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

// answer is a body for each request, which no connection carries.
type answer func(*http.Request) io.ReadCloser

func (a answer) RoundTrip(request *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {runtime.ContentTypeProtobuf}},
		Body: a(request), Request: request,
	}, nil
}

// BenchmarkHeartbeatEvent is what a heartbeat costs from the first byte of the watch event on: what bounds it, decoding,
// the reflector, and the two goroutines that it wakes. TLS and HTTP/2 are left out, and so is the judgement.
func BenchmarkHeartbeatEvent(b *testing.B) {
	beats := make([][]byte, 1000)
	for i := range beats {
		event, err := (&metav1.WatchEvent{
			Type: "MODIFIED", Object: runtime.RawExtension{Raw: encode(b, beat(i))},
		}).Marshal()
		if err != nil {
			b.Fatal(err)
		}
		beats[i] = append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...)
	}
	empty := encode(b, &coordinationv1.LeaseList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}})
	watched, events := io.Pipe()
	read := make(chan struct{})
	m := newMember("west", clock.RealClock{}, nil, nil, func(error) {})
	m.heartbeat.read = func(Heartbeat, bool) { read <- struct{}{} }
	client, err := coordinationclient.NewForConfigAndClient(&rest.Config{
		Host: "https://west", QPS: -1, ContentConfig: rest.ContentConfig{
			ContentType: runtime.ContentTypeProtobuf, AcceptContentTypes: runtime.ContentTypeProtobuf,
		},
	}, &http.Client{Transport: &frameLimiter{
		event: maxOther, patience: time.Minute, base: answer(func(r *http.Request) io.ReadCloser {
			if r.URL.Query().Get("watch") == "true" {
				return watched
			}
			return io.NopCloser(bytes.NewReader(empty))
		}),
	}})
	if err != nil {
		b.Fatal(err)
	}
	ctx, leave := context.WithCancel(b.Context())
	leases := client.Leases("clusterset-dns")
	list := func(ctx context.Context, options metav1.ListOptions) (*coordinationv1.LeaseList, error) {
		return listOne(ctx, leases, options)
	}
	var watches sync.WaitGroup
	watches.Go(func() {
		m.watch(ctx, watchedHeartbeat, selected(leases, heartbeatOnly, m.patience, list,
			func(context.Context, string) error { return nil }, m.outcome(watchedHeartbeat)), &coordinationv1.Lease{}, m.heartbeat, nil)
	})
	defer watches.Wait()
	defer leave()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := events.Write(beats[i%len(beats)]); err != nil {
			b.Fatal(err)
		}
		<-read
	}
}

// beat is a heartbeat as an API server keeps it.
func beat(i int) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "clusterset-dns", Name: HeartbeatLease, UID: "0b5e2f5c-5d6e-4f2c-9a65-2b8a5b7b3a10",
			ResourceVersion: fmt.Sprint(1000000 + i), CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0)),
			Annotations: map[string]string{
				HeartbeatUIDAnnotation: "5a1c4cb5-6a53-4a0b-a1d4-0e1f5f8a7a11", HeartbeatVersionAnnotation: "v1.2.3",
			},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "clusterset-controller", Operation: "Update", APIVersion: "coordination.k8s.io/v1",
				FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{".":{},` +
					`"f:clusterset-dns.github.io/kube-system-uid":{},"f:clusterset-dns.github.io/version":{}}},` +
					`"f:spec":{"f:holderIdentity":{},"f:leaseDurationSeconds":{},"f:renewTime":{}}}`),
			}},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("west"), LeaseDurationSeconds: ptr.To(int32(15)),
			RenewTime: ptr.To(metav1.NewMicroTime(time.Unix(1e9+int64(i), 0))),
		},
	}
}
