// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/klauspost/compress/gzhttp"
	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/pki"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
)

// A Member is one simulated cluster: a model API server behind TLS, whose published slices and heartbeat are written by
// this program.
type Member struct {
	// ID is the id of the cluster.
	ID string

	api    *apiserver.Server
	client *Client
	token  string
	server *httptest.Server
	lease  *coordinationv1.Lease // as last written
}

// newMember starts a cluster that is heard and exports nothing.
func newMember(ctx context.Context, number int, namespaces []string) (*Member, error) {
	m := &Member{ID: fmt.Sprintf("member-%d", number), token: fmt.Sprintf("token-of-reader-%d", number)}
	m.api = apiserver.New(apiserver.Options{Name: m.ID})
	var err error
	m.client, err = NewClient(&rest.Config{Host: "https://" + apiserver.Administrator, Transport: m.api})
	if err != nil {
		return nil, err
	}
	if err := m.client.Namespaces(ctx, append(namespaces, member.DefaultNamespace)...); err != nil {
		return nil, err
	}
	if err := m.beat(ctx); err != nil {
		return nil, err
	}
	handler, err := m.handler()
	if err != nil {
		return nil, err
	}
	m.server = httptest.NewUnstartedServer(handler)
	m.server.EnableHTTP2, m.server.Config.ErrorLog = true, log.New(io.Discard, "", 0)
	m.server.StartTLS()
	return m, nil
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

// close breaks connections and refuses others.
func (m *Member) close() {
	m.server.CloseClientConnections()
	m.server.Close()
}

// handler authenticates and serves a reader, and compresses what an API server does.
func (m *Member) handler() (http.HandlerFunc, error) {
	compress, err := gzhttp.NewWrapper(gzhttp.MinSize(128<<10), gzhttp.CompressionLevel(1))
	if err != nil {
		return nil, err
	}
	compressed := compress(m.api)
	return func(w http.ResponseWriter, req *http.Request) {
		switch {
		case req.Header.Get("Authorization") != "Bearer "+m.token:
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
		case req.URL.Query().Get("watch") != "":
			m.api.ServeHTTP(w, req)
		default:
			compressed(w, req)
		}
	}, nil
}

// Kubeconfig is the credential of a reader of the member, as kubectl clusterset join makes it.
func (m *Member) Kubeconfig() ([]byte, error) {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: m.server.Certificate().Raw})
	return pki.Kubeconfig("member", m.server.URL, authority, m.token, member.DefaultNamespace)
}
