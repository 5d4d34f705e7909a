// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/test/scenario"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
)

// A Controller is a process of the controller of a cluster. Its methods are for
// the goroutine of the scenario, except Writes and Running.
type Controller struct {
	// Gate, while it is frozen, lets no request of the process get to the API server of its cluster, and no answer back, as
	// if it stood still in between. Its timers go on.
	apiserver.Gate

	cluster *Cluster
	ended   <-chan struct{} // closed when the process ends
	cancel  context.CancelFunc
	done    chan struct{}
	err     error

	// dead has nothing leave the process any more.
	dead atomic.Bool

	mu     sync.Mutex
	writes []string // method and path
	killAt int      // 0 for never
}

// StartReplica starts a process of the controller besides others, with the
// options that every process has and what changes them. A process that ends because it is to restart is started again
// at once, with the same name and changes, as a kubelet does.
func (c *Cluster) StartReplica(changes ...func(*controller.Options)) *Controller {
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logr.Discard()))
	p := &Controller{cluster: c, ended: ctx.Done(), cancel: cancel, done: make(chan struct{})}
	changes = append(slices.Clone(changes), c.Always...)
	options := func() controller.Options {
		config := rest.CopyConfig(c.config)
		config.Transport = p
		options := controller.Options{
			Config: config, Cluster: c.Name, Registry: prometheus.NewRegistry(), DialMember: p.dial,
		}
		for _, change := range changes {
			change(&options)
		}
		return options
	}
	first := options()
	c.controllers = append(c.controllers, p)
	go func() {
		defer close(p.done)
		p.err = scenario.Run(ctx, first, options)
	}()
	return p
}

// Canary has a replica answer probes at an address of the network, and probe those of others.
func (c *Cluster) Canary(address string) func(*controller.Options) {
	return func(options *controller.Options) {
		listener, err := c.network.Listen(address)
		c.Must(err)
		options.Canary, options.DialCanary = listener, options.DialMember
	}
}

// StartController starts the controller.
func (c *Cluster) StartController(changes ...func(*controller.Options)) {
	c.Controller = c.StartReplica(changes...)
}

// StopController stops it as a signal does. It does nothing if it does not run.
func (c *Cluster) StopController() {
	if c.Controller == nil {
		return
	}
	c.Controller.Stop()
	c.Controller = nil
}

// KillController kills it. It does nothing if it does not run.
func (c *Cluster) KillController() {
	if c.Controller != nil {
		c.Controller.Kill()
		c.Controller = nil
	}
}

// Ended returns the error that the process ended with, nil if it runs or was stopped. Stop does not report it again.
func (p *Controller) Ended() error {
	select {
	case <-p.done:
		err := p.err
		p.err = nil
		return err
	default:
		return nil
	}
}

// Stop stops the process as a signal does.
func (p *Controller) Stop() {
	p.cancel()
	<-p.done
	if p.err != nil && !p.dead.Load() {
		p.cluster.t.Errorf("the controller of %s: %v", p.cluster.Name, p.err)
	}
}

// Kill ends the process: nothing leaves it from now on, not even the leader Lease.
func (p *Controller) Kill() {
	p.die()
	p.Thaw()
	<-p.done
}

func (p *Controller) die() {
	p.dead.Store(true)
	p.cancel()
}

// KillAt has the process killed at one of its Writes, counted from 1 from now
// on: after the API server applied it, and before the answer.
func (p *Controller) KillAt(number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killAt = len(p.writes) + number
}

// Running tells that the process was not killed and has not ended.
func (p *Controller) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return !p.dead.Load()
	}
}

// Writes are the requests by which the process changed something or tried to, Leases and dry runs left out.
func (p *Controller) Writes() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.writes)
}

// RoundTrip implements http.RoundTripper: it is the connection to the API server of the cluster.
func (p *Controller) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := p.passes(req.Context()); err != nil {
		return nil, err
	}
	number := p.begin(req)
	response, err := p.cluster.API.RoundTrip(req)
	if err == nil {
		p.end(number)
		err = p.passes(req.Context())
	}
	if err != nil {
		return nil, err
	}
	//nolint:contextcheck // a body lasts as long as the context of its request
	response.Body = &stream{ReadCloser: response.Body, passes: func() error { return p.passes(req.Context()) }}
	return response, nil
}

// passes waits while the process is frozen, and fails if it is dead.
func (p *Controller) passes(ctx context.Context) error {
	err := p.Pass(ctx)
	if p.dead.Load() {
		return syscall.ECONNRESET
	}
	return err
}

// begin counts a write before the API server gets it. The number is 0 for anything else.
func (p *Controller) begin(req *http.Request) (number int) {
	if req.Method == http.MethodGet || req.URL.Query().Has("dryRun") || strings.Contains(req.URL.Path, "/leases") {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes = append(p.writes, req.Method+" "+req.URL.Path)
	return len(p.writes)
}

// end kills the process if that was the write at which it is to be killed.
func (p *Controller) end(number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if number > 0 && number == p.killAt {
		p.die()
	}
}

// A stream is the body of a response, which waits with the process.
type stream struct {
	io.ReadCloser
	passes func() error
}

func (s *stream) Read(buffer []byte) (int, error) {
	n, err := s.ReadCloser.Read(buffer)
	if failed := s.passes(); failed != nil {
		return 0, failed
	}
	return n, err
}

// dial connects the process to a member.
func (p *Controller) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if p.dead.Load() {
		return nil, syscall.ECONNREFUSED
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	return p.cluster.network.Dialer(p.cluster.Name)(ctx, network, address)
}
