// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
)

// crowd is the controllers of other clusters as an API server sees them: a connection with two watches each. They read
// what arrives and count it.
type crowd struct {
	clients []*http.Client
	config  *rest.Config
	// received is the number of bytes of all connections, with those of TLS.
	received atomic.Int64
	group    sync.WaitGroup
	stop     context.CancelFunc
}

// crowd connects so many readers and returns once their watches are open.
func (b *bed) crowd(ctx context.Context, count int) (_ *crowd, err error) {
	kubeconfig, err := b.plane.ServiceAccountKubeconfig(ctx, clusterset.Namespace, "clusterset-member")
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(config.CAData)
	reading, stop := context.WithCancel(ctx)
	c := &crowd{config: config, stop: stop}
	defer func() {
		if err != nil {
			c.leave()
		}
	}()
	for range count {
		transport := &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2: true,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				var dialer net.Dialer
				conn, err := dialer.DialContext(ctx, network, address)
				return &counted{conn, &c.received}, err
			},
		}
		client := &http.Client{Transport: transport}
		c.clients = append(c.clients, client)
		for path, query := range c.watched() {
			query.Set("watch", "true")
			response, err := c.get(reading, client, path, query)
			if err != nil {
				return nil, err
			}
			c.group.Go(func() {
				_, _ = io.Copy(io.Discard, response.Body) // until it leaves
				response.Body.Close()
			})
		}
	}
	return c, nil
}

// watched are the two requests of a reader: paths with queries.
func (c *crowd) watched() map[string]url.Values {
	return map[string]url.Values{
		slicesPath: {"labelSelector": {export.LabelSourceCluster + "=" + readCluster}},
		"/apis/coordination.k8s.io/v1/namespaces/" + member.DefaultNamespace + "/leases": {
			"fieldSelector": {"metadata.name=" + member.HeartbeatLease},
		},
	}
}

const slicesPath = "/apis/discovery.k8s.io/v1/endpointslices"

// readCluster is the id that the local cluster publishes slices under, for its readers.
const readCluster = "local"

func (c *crowd) get(ctx context.Context, client *http.Client, path string, query url.Values) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.config.Host+path+"?"+query.Encode(), http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.config.BearerToken)
	request.Header.Set("Accept", "application/vnd.kubernetes.protobuf")
	response, err := client.Do(request)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.Join(fmt.Errorf("read %s: %s", path, response.Status), response.Body.Close())
	}
	return response, err
}

// list has the first reader list the published slices as a controller does.
func (c *crowd) list(ctx context.Context) error {
	query := c.watched()[slicesPath]
	query.Set("limit", "100")
	response, err := c.get(ctx, c.clients[0], slicesPath, query)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return errors.Join(err, response.Body.Close())
}

// leave closes all connections.
func (c *crowd) leave() {
	c.stop()
	c.group.Wait()
	for _, client := range c.clients {
		client.CloseIdleConnections()
	}
}

// counted counts what a connection receives.
type counted struct {
	net.Conn
	received *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.received.Add(int64(n))
	return n, err
}

// serverHeap is the memory that the own API server uses, its garbage collected.
func (b *bed) serverHeap(ctx context.Context) (float64, error) {
	var text []byte
	for range 2 {
		var err error
		if text, err = b.plane.Client().Discovery().RESTClient().Get().AbsPath("/debug/pprof/heap").
			Param("gc", "1").Param("debug", "1").DoRaw(ctx); err != nil {
			return 0, fmt.Errorf("heap of the API server: %w", err)
		}
	}
	used := 0.0
	for _, key := range []string{"# HeapAlloc = ", "# Stack = "} {
		_, after, found := bytes.Cut(text, []byte(key))
		value, _, _ := strings.Cut(string(after), "\n")
		value, _, _ = strings.Cut(value, " /")
		number, err := strconv.ParseFloat(value, 64)
		if err != nil || !found {
			return 0, fmt.Errorf("heap of the API server: %q: %w", value, err)
		}
		used += number
	}
	return used, nil
}

// cost is the processor time of the own API server with its etcd while something is done, beyond that at rest, and the
// bytes that readers receive meanwhile.
func (b *bed) cost(ctx context.Context, c *crowd, do func() error) (cpu time.Duration, received int64, err error) {
	measured := func(do func() error) (time.Duration, time.Duration, int64, error) {
		before, read := b.serverCPU(), c.received.Load()
		began := time.Now()
		err := errors.Join(do(), b.pause(ctx, b.rest/30)) // for what is under way
		after := b.serverCPU()
		return after.used - before.used, time.Since(began), c.received.Load() - read,
			errors.Join(err, before.err, after.err)
	}
	idle, lasted, _, err := measured(func() error { return nil })
	if err != nil {
		return 0, 0, err
	}
	used, took, received, err := measured(do)
	return used - time.Duration(float64(idle)*float64(took)/float64(lasted)), received, err
}
