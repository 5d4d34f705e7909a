// SPDX-License-Identifier: Apache-2.0

package member

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/relay/mailbox"
)

// keyOf is a signing key.
func keyOf(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(slices.Repeat([]byte{seed}, ed25519.SeedSize))
}

// publicKeys is the public keys in PEM.
func publicKeys(t testing.TB, keys ...ed25519.PrivateKey) string {
	var text strings.Builder
	for _, key := range keys {
		der, err := x509.MarshalPKIXPublicKey(key.Public())
		if err != nil {
			t.Fatal(err)
		}
		text.Write(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	}
	return text.String()
}

// aRelay is the API of a relay with the mailbox of cluster west, and the source that writes it.
type aRelay struct {
	t      *testing.T
	server *httptest.Server
	key    ed25519.PrivateKey

	mu       sync.Mutex
	version  int
	counter  int64
	ledger   mailbox.Ledger
	records  map[string]*corev1.ConfigMap
	lease    *coordinationv1.Lease
	watches  map[chan *metav1.WatchEvent]bool // by whether it is one of records
	requests []string
	down     bool
	lists    int
}

func newRelay(t *testing.T, seed byte) *aRelay {
	r := &aRelay{
		t: t, key: keyOf(seed), counter: 1000, version: 10, records: map[string]*corev1.ConfigMap{},
		watches: map[chan *metav1.WatchEvent]bool{},
	}
	r.server = httptest.NewUnstartedServer(r)
	r.server.EnableHTTP2 = true
	r.server.StartTLS()
	t.Cleanup(r.server.Close)
	return r
}

var west = mailbox.Source{Cluster: "west"}

func (r *aRelay) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	records, watch := strings.HasSuffix(request.URL.Path, "/configmaps"), query.Get("watch") == "true"
	r.mu.Lock()
	r.requests = append(r.requests, request.URL.Path+" "+query.Get("labelSelector")+query.Get("fieldSelector"))
	if r.down {
		r.mu.Unlock()
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
	if watch {
		events := make(chan *metav1.WatchEvent, 100)
		r.watches[events] = records
		r.mu.Unlock()
		defer func() {
			r.mu.Lock()
			delete(r.watches, events)
			r.mu.Unlock()
		}()
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case <-request.Context().Done():
				return
			case event, open := <-events:
				if !open {
					return
				}
				encoded, err := event.Marshal()
				if err != nil {
					r.t.Error(err)
				}
				_, _ = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(encoded))), encoded...))
				_ = http.NewResponseController(w).Flush()
			}
		}
	}
	defer r.mu.Unlock()
	version := metav1.ListMeta{ResourceVersion: fmt.Sprint(r.version)}
	var object runtime.Object
	if records {
		r.lists++
		list := &corev1.ConfigMapList{ListMeta: version}
		for _, record := range r.records {
			list.Items = append(list.Items, *record)
		}
		object = list
	} else {
		list := &coordinationv1.LeaseList{ListMeta: version}
		if r.lease != nil {
			list.Items = append(list.Items, *r.lease)
		}
		object = list
	}
	_, _ = w.Write(encode(r.t, object))
}

// send sends an event to the watches. The caller holds the lock.
func (r *aRelay) send(records bool, kind string, object runtime.Object) {
	for events, of := range r.watches {
		if of == records {
			events <- &metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: encode(r.t, object)}}
		}
	}
}

// publish writes a slice of a service with an address, as the source does.
func (r *aRelay) publish(name, service, address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	published := slice(name, service, "1")
	published.Labels[v1beta1.LabelSourceCluster] = "west"
	published.AddressType = discoveryv1.AddressTypeIPv4
	published.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{address}}}
	encoded, err := mailbox.Encode(published)
	if err != nil {
		r.t.Fatal(err)
	}
	r.sign(published, service, encoded)
}

// sign signs and writes an encoded slice. The caller holds the lock.
func (r *aRelay) sign(published *discoveryv1.EndpointSlice, service string, encoded []byte) {
	r.counter++
	r.version++
	record, err := mailbox.ConfigMap(r.key, west, nameOf(published), service, r.counter, encoded)
	if err != nil {
		r.t.Fatal(err)
	}
	record.ResourceVersion = fmt.Sprint(r.version)
	r.records[record.Name] = record
	r.ledger.Put(nameOf(published), mailbox.Entry{Counter: r.counter, Digest: sha256.Sum256(encoded)})
	r.send(true, "MODIFIED", record)
}

// withdraw deletes a slice, as the source does. Without truth, only the relay does.
func (r *aRelay) withdraw(name string, truth bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := types.NamespacedName{Namespace: slice(name, "", "").Namespace, Name: name}
	record := r.records[mailbox.RecordName(of)]
	r.version++
	record = record.DeepCopy()
	record.ResourceVersion = fmt.Sprint(r.version)
	delete(r.records, record.Name)
	if truth {
		r.ledger.Delete(of)
	}
	r.send(true, "DELETED", record)
}

// beat renews the heartbeat.
func (r *aRelay) beat(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	heartbeat := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: ptr.To(metav1.NewMicroTime(at))}}
	heartbeat.Annotations = map[string]string{HeartbeatUIDAnnotation: "uid-west"}
	r.counter = max(r.counter+1, at.UnixMilli())
	r.version++
	lease, err := mailbox.Lease(r.key, west, r.counter, &r.ledger, heartbeat)
	if err != nil {
		r.t.Fatal(err)
	}
	lease.ResourceVersion = fmt.Sprint(r.version)
	r.lease = lease
	r.send(false, "MODIFIED", lease)
}

// path is the path through the relay.
func (r *aRelay) path(name string) path {
	all := pathsOf(parse(&Candidate{Cluster: "west", Kind: kindFlag}, nil), nil)
	if len(all) != 0 {
		r.t.Fatal("a path without a credential")
	}
	credential := credentialOf(r.server)
	signers, err := signersOf([]byte(publicKeys(r.t, r.key)))
	if err != nil {
		r.t.Fatal(err)
	}
	credential.Namespace = mailbox.Namespace("", "west")
	return path{
		relay: name, credential: credential, signers: signers, version: sha256.Sum256([]byte(name)),
		client: sha256.Sum256([]byte(r.server.URL)),
	}
}
