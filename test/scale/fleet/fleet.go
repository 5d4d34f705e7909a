// SPDX-License-Identifier: Apache-2.0

// Package fleet simulates the other clusters of a large cluster set, cheaply enough for one machine.
//
// Real: TLS, HTTP/2, one listener and one credential per cluster, and what test/sim/apiserver models of an API server
// (lists in pages, watches, resourceVersions, compaction), which its contract test holds to a real one. Published
// slices come from the controller's own code.
//
// Faked: the clusters have no nodes, pods, Services or ServiceExports and no etcd, all answer from one process over
// loopback without delay or loss, and nothing but published slices and heartbeats changes in them.
package fleet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/pki"
)

// serverName is the name in the certificate of all members.
const serverName = "member.scale.example"

// A Fleet is all simulated clusters. One goroutine uses it, besides the heartbeats.
type Fleet struct {
	Shape
	Members []*Member

	authority []byte // PEM
	places    []place
	next      int // of places
	number    uint32

	cancel  context.CancelFunc
	beating chan error
}

// A place is a slice that can change.
type place struct {
	member          *Member
	service         int
	namespace, name string
	first           int // endpoint
}

// Start starts clusters that are heard and export nothing. Who calls it stops them.
func Start(ctx context.Context, shape Shape) (_ *Fleet, err error) {
	if err := shape.Validate(); err != nil {
		return nil, err
	}
	f := &Fleet{Shape: shape, beating: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Stop())
		}
	}()
	certificate, key, err := pki.SelfSigned([]string{serverName})
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	f.authority = certificate
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, Certificates: []tls.Certificate{pair},
	}
	for i := range shape.Members {
		m, err := newMember(i, config)
		if err != nil {
			return nil, err
		}
		f.Members = append(f.Members, m)
		if err := errors.Join(m.begin(ctx, shape.Namespaces()), m.listen(ctx, i)); err != nil {
			return nil, err
		}
	}
	beating, cancel := context.WithCancel(ctx)
	f.cancel = cancel
	go func() { f.beating <- f.beat(beating) }()
	return f, nil
}

// Stop ends all. It returns what went wrong with the heartbeats. It may be called on nil.
func (f *Fleet) Stop() error {
	if f == nil {
		return nil
	}
	var errs []error
	if f.cancel != nil {
		f.cancel()
		errs = append(errs, <-f.beating)
		f.cancel = nil
	}
	for _, m := range f.Members {
		errs = append(errs, m.close())
	}
	return errors.Join(errs...)
}

// beat renews the heartbeats of all members in turn, each every member.HeartbeatInterval, until the context ends.
func (f *Fleet) beat(ctx context.Context) error {
	ticker := time.NewTicker(member.HeartbeatInterval / time.Duration(len(f.Members)))
	defer ticker.Stop()
	for began, done := time.Now(), 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		// Ticks that were dropped are made up for.
		due := int(time.Since(began) * time.Duration(len(f.Members)) / member.HeartbeatInterval)
		for ; done < due; done++ {
			m := f.Members[done%len(f.Members)]
			if err := m.beat(ctx); err != nil && ctx.Err() == nil {
				return fmt.Errorf("renew the heartbeat of %s: %w", m.ID, err)
			}
		}
	}
}

// Kubeconfig is the credential of a reader of the member, as kubectl clusterset join makes it.
func (f *Fleet) Kubeconfig(m *Member) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.CurrentContext = "member"
	config.Contexts["member"] = &clientcmdapi.Context{
		Cluster: "member", AuthInfo: "member", Namespace: member.DefaultNamespace,
	}
	config.Clusters["member"] = &clientcmdapi.Cluster{
		Server: "https://" + m.address, TLSServerName: serverName, CertificateAuthorityData: f.authority,
	}
	config.AuthInfos["member"] = &clientcmdapi.AuthInfo{Token: m.token}
	return clientcmd.Write(*config)
}

// Export has all members publish their services. The seed orders the changes to come.
func (f *Fleet) Export(ctx context.Context, seed uint64) error {
	for i, m := range f.Members {
		for _, each := range f.servicesOf(i) {
			slices, err := f.published(m.ID, each[0], each[1])
			if err != nil {
				return err
			}
			if err := m.publish(ctx, slices); err != nil {
				return err
			}
			for n, slice := range slices {
				f.places = append(f.places, place{m, each[0], slice.Namespace, slice.Name, n * perSlice})
			}
		}
	}
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(f.places), func(i, j int) { f.places[i], f.places[j] = f.places[j], f.places[i] })
	return nil
}

// A Change is an endpoint that got another address.
type Change struct {
	// Host is the name in DNS of the endpoint, empty if its service is not headless.
	Host string
	// At is when the API server of the member was asked for the change.
	At time.Time

	number uint32
}

// Answers reports whether an address is that of the change or of a later one.
func (c Change) Answers(ip netip.Addr) bool { return numberOf(ip) >= c.number }

// Change changes the next endpoint in the order of the seed.
func (f *Fleet) Change(ctx context.Context) (Change, error) {
	p := f.places[f.next%len(f.places)]
	f.next++
	return f.change(ctx, p)
}

// ChangeEach changes one endpoint of a headless service in each member that has one.
func (f *Fleet) ChangeEach(ctx context.Context) (all []Change, err error) {
	done := map[*Member]bool{}
	for _, p := range f.places {
		if done[p.member] || !headless(p.service) {
			continue
		}
		done[p.member] = true
		change, err := f.change(ctx, p)
		if err != nil {
			return nil, err
		}
		all = append(all, change)
	}
	return all, nil
}

func (f *Fleet) change(ctx context.Context, p place) (Change, error) {
	f.number++
	c := Change{At: time.Now(), number: f.number}
	if headless(p.service) {
		c.Host = fmt.Sprintf("%s.%s.%s.%s.svc.clusterset.local.", host(p.first), p.member.ID, nameOf(p.service),
			namespaceOf(p.service))
	}
	slices := p.member.client.DiscoveryV1().EndpointSlices(p.namespace)
	slice, err := slices.Get(ctx, p.name, metav1.GetOptions{})
	if err != nil {
		return c, err
	}
	slice.Endpoints[0].Addresses = []string{address(changed + f.number%changed).String()}
	metav1.SetMetaDataAnnotation(&slice.ObjectMeta, export.AnnotationTriggerTime,
		c.At.UTC().Format(time.RFC3339Nano))
	_, err = slices.Update(ctx, slice, metav1.UpdateOptions{})
	return c, err
}
