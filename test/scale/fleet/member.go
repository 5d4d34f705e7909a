// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
)

// A Member is one simulated cluster: a model API server behind TLS, whose published slices and heartbeat are written by
// this program.
type Member struct {
	// ID is the id of the cluster.
	ID string

	api     *apiserver.Server
	client  kubernetes.Interface
	token   string
	tls     *tls.Config
	address string // once it listens
	server  *http.Server
	lease   *coordinationv1.Lease // as last written
	// stopped is closed when the server no longer serves.
	stopped chan struct{}
}

func newMember(number int, config *tls.Config) (*Member, error) {
	m := &Member{ID: fmt.Sprintf("member-%d", number), tls: config, token: fmt.Sprintf("token-of-reader-%d", number)}
	m.api = apiserver.New(apiserver.Options{Name: m.ID})
	var err error
	m.client, err = kubernetes.NewForConfig(&rest.Config{
		Host: "https://" + apiserver.Administrator, Transport: m.api, QPS: -1,
		ContentConfig: rest.ContentConfig{
			ContentType: "application/vnd.kubernetes.protobuf", AcceptContentTypes: "application/vnd.kubernetes.protobuf",
		},
	})
	return m, err
}

// begin makes what the cluster has before it exports anything.
func (m *Member) begin(ctx context.Context, namespaces []string) error {
	for _, name := range append([]string{member.DefaultNamespace}, namespaces...) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := m.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return m.beat(ctx)
}

// beat renews the heartbeat as the controller of the cluster does.
func (m *Member) beat(ctx context.Context) (err error) {
	leases := m.client.CoordinationV1().Leases(member.DefaultNamespace)
	now := ptr.To(metav1.NowMicro())
	if m.lease == nil {
		m.lease, err = leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: member.HeartbeatLease, Annotations: map[string]string{
				member.HeartbeatUIDAnnotation: "uid-of-" + m.ID, member.HeartbeatVersionAnnotation: "scale",
			}},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &m.ID, RenewTime: now,
				LeaseDurationSeconds: ptr.To(int32(3 * member.HeartbeatInterval / time.Second)),
			},
		}, metav1.CreateOptions{})
		return err
	}
	m.lease.Spec.RenewTime = now
	m.lease, err = leases.Update(ctx, m.lease, metav1.UpdateOptions{})
	return err
}

// publish creates slices that the cluster publishes.
func (m *Member) publish(ctx context.Context, slices []*discoveryv1.EndpointSlice) error {
	for _, slice := range slices {
		slice.OwnerReferences = nil // the model has no ServiceExports
		if _, err := m.client.DiscoveryV1().EndpointSlices(slice.Namespace).Create(ctx, slice,
			metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("publish %s of %s: %w", slice.Name, m.ID, err)
		}
	}
	return nil
}

// listen serves at a loopback address of the member's own.
func (m *Member) listen(ctx context.Context, number int) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", fmt.Sprintf("127.77.%d.%d:0", number>>8, number&0xff))
	if err != nil {
		return fmt.Errorf("listen for %s: %w", m.ID, err)
	}
	m.address, m.stopped = listener.Addr().String(), make(chan struct{})
	m.server = &http.Server{
		Handler: m, TLSConfig: m.tls.Clone(), ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
	}
	server, stopped := m.server, m.stopped
	go func() {
		defer close(stopped)
		_ = server.ServeTLS(listener, "", "") // it ends when it is closed
	}()
	return nil
}

// close refuses connections and breaks those that exist.
func (m *Member) close() error {
	if m.server == nil {
		return nil
	}
	err := m.server.Close()
	<-m.stopped
	m.server = nil
	return err
}

// ServeHTTP authenticates and serves a reader.
func (m *Member) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	switch {
	case req.Header.Get("Authorization") != "Bearer "+m.token:
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
	case req.URL.Query().Get("watch") != "":
		m.api.ServeHTTP(w, req)
	default:
		m.answer(w, req)
	}
}

// compressFrom is the size from which an API server compresses a response, and compressLevel how hard it tries.
const (
	compressFrom  = 128 << 10
	compressLevel = 1
)

// answer serves a request other than a watch, compressed as an API server does it.
func (m *Member) answer(w http.ResponseWriter, req *http.Request) {
	outgoing := req.Clone(req.Context())
	outgoing.URL.Host = req.RemoteAddr
	response, err := m.api.RoundTrip(outgoing)
	if err != nil {
		panic(http.ErrAbortHandler) // nobody waits for it
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), response.Header)
	if len(body) >= compressFrom && strings.Contains(req.Header.Get("Accept-Encoding"), "gzip") {
		var compressed bytes.Buffer
		writer, err := gzip.NewWriterLevel(&compressed, compressLevel)
		if err == nil {
			_, err = writer.Write(body)
		}
		if err != nil || writer.Close() != nil {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Encoding", "gzip")
		body = compressed.Bytes()
	}
	w.WriteHeader(response.StatusCode)
	_, _ = w.Write(body) // a reader that went away is its own affair
}
