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

	"github.com/klauspost/compress/gzhttp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/pki"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
)

// A Member is a simulated cluster: a model API server with TLS. This program writes its published slices and its
// heartbeat.
type Member struct {
	// ID is the id of the cluster.
	ID string

	client *Client
	token  string
	server *httptest.Server
	lease  *coordinationv1.Lease // as last written
}

// newMember starts a cluster that sends heartbeats and exports nothing.
func newMember(ctx context.Context, number int, namespaces []string) (*Member, error) {
	m := &Member{ID: fmt.Sprintf("member-%d", number), token: fmt.Sprintf("token-of-reader-%d", number)}
	api := apiserver.New(apiserver.Options{Name: m.ID, Administrator: m.token})
	var err error
	m.client, err = NewClient(&rest.Config{Host: "https://" + apiserver.Administrator, Transport: api, BearerToken: m.token})
	if err != nil {
		return nil, err
	}
	if err := m.client.Namespaces(ctx, append(namespaces, member.DefaultNamespace)...); err != nil {
		return nil, err
	}
	if err := m.beat(ctx); err != nil {
		return nil, err
	}
	// Like a real API server, it compresses large lists.
	compress, err := gzhttp.NewWrapper(gzhttp.MinSize(128<<10), gzhttp.CompressionLevel(1))
	if err != nil {
		return nil, err
	}
	compressed := compress(api)
	m.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Query().Get("watch") != "" {
			api.ServeHTTP(w, req)
		} else {
			compressed(w, req)
		}
	}))
	m.server.EnableHTTP2, m.server.Config.ErrorLog = true, log.New(io.Discard, "", 0)
	m.server.StartTLS()
	return m, nil
}

// beat renews the heartbeat, as the cluster's controller would.
func (m *Member) beat(ctx context.Context) (err error) {
	leases := m.client.CoordinationV1().Leases(member.DefaultNamespace)
	now := ptr.To(metav1.NowMicro())
	if m.lease == nil {
		m.lease, err = leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: member.HeartbeatLease, Annotations: map[string]string{
				member.HeartbeatUIDAnnotation: "uid-of-" + m.ID, member.HeartbeatVersionAnnotation: "scale",
			}},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &m.ID, RenewTime: now},
		}, metav1.CreateOptions{})
		return err
	}
	m.lease.Spec.RenewTime = now
	m.lease, err = leases.Update(ctx, m.lease, metav1.UpdateOptions{})
	return err
}

// Kubeconfig returns the credential for a reader of the member, in the form of kubectl clusterset join.
func (m *Member) Kubeconfig() ([]byte, error) {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: m.server.Certificate().Raw})
	return pki.Kubeconfig("member", m.server.URL, authority, m.token)
}
