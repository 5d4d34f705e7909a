// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	plugin "github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/network"
)

// A client asks the DNS of a cluster as its pods do: from a network namespace of its own, at the ClusterIP of the Service
// of the cluster's DNS.
type client struct {
	cluster   *cluster
	namespace *network.Namespace
}

// newClient attaches a client, until the test ends. There is at most one of each cluster.
func (c *cluster) newClient(t *testing.T) *client {
	t.Helper()
	namespace, err := network.New()
	must(t, err)
	t.Cleanup(func() { must(t, namespace.Close()) })
	// Nodes have the lower parts of the range.
	pods := c.Options().PodCIDRs[0]
	last := pods.Masked().Addr().As4()
	for bit := pods.Bits(); bit < 31; bit++ {
		last[bit/8] |= 0x80 >> (bit % 8)
	}
	must(t, router.Attach(namespace, []netip.Addr{netip.AddrFrom4(last)}))
	return &client{cluster: c, namespace: namespace}
}

// ask asks for the addresses of a name. A query without a reply is sent again, as resolvers do.
func (c *client) ask(ctx context.Context, name string) (answer string, err error) {
	err = c.namespace.Do(func() error {
		found, err := plugin.DNSAt(dnsAddress(c.cluster.Cluster)).Ask(ctx, name, "A")
		answer = found.Text()
		return err
	})
	return answer, err
}

// keep asks again and again, until stop is called, which returns how many answers there were. Each must be the wanted one.
func (c *client) keep(t testing.TB, name string, want wanted) (stop func() int) {
	t.Helper()
	records, err := want(t.Context())
	must(t, err)
	text := sorted(records)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	count, failures := 0, []error{}
	group.Go(func() {
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			answer, err := c.ask(ctx, name)
			if ctx.Err() != nil {
				return
			}
			count++
			if err == nil && answer != text {
				err = fmt.Errorf("%s: answer %d in %s is %q, want %q", name, count, c.cluster.Name(), answer, text)
			}
			if err != nil && len(failures) < 5 {
				failures = append(failures, err)
			}
		}
	})
	return func() int {
		t.Helper()
		cancel()
		group.Wait()
		if err := errors.Join(failures...); err != nil {
			t.Error(err)
		}
		return count
	}
}
