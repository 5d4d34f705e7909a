// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/local"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
)

// A Controller is a process of the controller in a cluster. Its methods except Writes and Running must be called from
// the goroutine of the scenario.
type Controller struct {
	// Gate, while it is frozen, blocks the process's requests to the API server of its cluster, and the responses, as
	// if the process was paused in between. Its timers continue.
	apiserver.Gate

	cluster  *Cluster
	ctx      context.Context //nolint:containedctx // ends with the process
	cancel   context.CancelFunc
	done     chan struct{}
	err      error
	registry atomic.Pointer[prometheus.Registry] // of the most recently started controller

	// dead blocks all requests of a killed process.
	dead atomic.Bool

	mu        sync.Mutex
	writes    []string // method and path
	conflicts int      // how many of the writes got a conflict
	killAt    int      // 0 means never
}

// StartReplica starts another process of the controller, with the Options of the cluster as modified by changes. A
// process that exits to be restarted is restarted at once, with the same name and changes, as a kubelet does.
func (c *Cluster) StartReplica(changes ...func(*controller.Options)) *Controller {
	p := &Controller{cluster: c, done: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(klog.NewContext(context.Background(), logr.Discard()))
	begin := c.Options
	next := func() controller.Options {
		options := begin
		options.Config, options.Registry = rest.CopyConfig(c.platform.Controller), prometheus.NewRegistry()
		options.Config.Wrap(p.wrap)
		if options.Dial != nil {
			options.Dial = p.dialer(options.Dial)
		}
		p.registry.Store(options.Registry)
		for _, change := range changes {
			change(&options)
		}
		return options
	}
	first := next()
	c.processes = append(c.processes, p)
	go func() {
		defer close(p.done)
		p.err = controller.Run(p.ctx, first)
		for errors.Is(p.err, controller.ErrLost) || errors.Is(p.err, local.ErrChanged) {
			p.err = controller.Run(p.ctx, next())
		}
	}()
	return p
}

// Ended returns the error with which the process ended, or nil if it runs or was stopped. Stop then does not report it again.
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
	if err := p.Ended(); err != nil && !p.dead.Load() {
		p.cluster.set.Errorf("the controller of %s: %v", p.cluster.Name, err)
	}
}

// Kill kills the process: it sends nothing from now on, and does not release the leader Lease.
func (p *Controller) Kill() {
	p.die()
	p.Thaw()
	<-p.done
}

func (p *Controller) die() {
	p.dead.Store(true)
	p.cancel()
}

// KillAt kills the process at one of its next Writes, counted from 1: after the API server has applied the write, and
// before its response.
func (p *Controller) KillAt(number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killAt = len(p.writes) + number
}

// Running reports whether the process was not killed and has not ended.
func (p *Controller) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return !p.dead.Load()
	}
}

// Writes returns the process's write requests, even refused ones, without Leases and dry runs.
func (p *Controller) Writes() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.writes)
}

// wrap adds the process to the connection to the API server of the cluster.
func (p *Controller) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if err := p.passes(request.Context()); err != nil {
			return nil, err
		}
		number, name := p.begin(request)
		response, err := next.RoundTrip(request)
		if err == nil {
			p.end(number, name != "" && response.StatusCode == http.StatusConflict)
			err = p.passes(request.Context())
		}
		if err != nil {
			return nil, err
		}
		//nolint:contextcheck // a body lasts as long as the context of its request
		response.Body = &stream{ReadCloser: response.Body, passes: func() error { return p.passes(request.Context()) }}
		return response, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// passes waits while the process is frozen. It returns an error if the process is dead.
func (p *Controller) passes(ctx context.Context) error {
	err := p.Pass(ctx)
	if p.dead.Load() {
		return syscall.ECONNRESET
	}
	return err
}

// begin counts a write before the API server gets it, and names it as in asked. number is 0 for other requests.
func (p *Controller) begin(req *http.Request) (number int, name string) {
	if req.Method == http.MethodGet || req.URL.Query().Get("dryRun") != "" || strings.Contains(req.URL.Path, "/leases") {
		return 0, ""
	}
	write := req.Method + " " + req.URL.Path
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes = append(p.writes, write)
	return len(p.writes), nameOf(write)
}

// end counts a conflict, and kills the process if this is the write of KillAt.
func (p *Controller) end(number int, conflict bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if conflict {
		p.conflicts++
	}
	if number > 0 && number == p.killAt {
		p.die()
	}
}

// A stream is the body of a response. Reads wait while the process is frozen.
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

// dialer makes the process's connections to members depend on its life.
func (p *Controller) dialer(dial utilnet.DialFunc) utilnet.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if p.dead.Load() {
			return nil, syscall.ECONNREFUSED
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(p.ctx, cancel)() //nolint:contextcheck // the process ends its connections
		return dial(ctx, network, address)
	}
}

// conflicts is the key of asked that counts writes refused with a conflict.
const conflicts = "conflicts"

// asked counts the writes that the controllers of the cluster requested, by method and resource, and the conflicts
// among them. It omits Leases, Events and dry runs. Writes are counted in the client, so that writes of other clients
// are not included.
func (c *Cluster) asked() map[string]int {
	counts := map[string]int{}
	for _, p := range c.processes {
		p.mu.Lock()
		counts[conflicts] += p.conflicts
		p.mu.Unlock()
		for _, write := range p.Writes() {
			if name := nameOf(write); name != "" {
				counts[name]++
			}
		}
	}
	return counts
}

// nameOf returns the name under which asked counts a write, or an empty name.
func nameOf(write string) string {
	method, path, _ := strings.Cut(write, " ")
	for part := range strings.SplitSeq(path, "/") {
		switch part {
		case "services", "endpointslices", "serviceimports", "serviceexports":
			return method + " " + part
		}
	}
	return ""
}

// longest is longer than any interval after which a controller reconciles a service again without an event.
const longest = 12 * time.Second

// Quiet waits until the controllers of the clusters, all if none is given, request no write for some time.
func (s *Set) Quiet(clusters ...*Cluster) {
	clusters, before := s.or(clusters), ""
	s.Eventually("rest", func() error {
		s.Pass(longest)
		last := before
		if before = written(clusters); before != last {
			return fmt.Errorf("writes go on:\n%s%s", last, before)
		}
		return nil
	})
}

// written returns the writes of the controllers of clusters, as text.
func written(clusters []*Cluster) (text string) {
	for _, c := range clusters {
		text += fmt.Sprintln(c.Name, c.asked())
	}
	return text
}
