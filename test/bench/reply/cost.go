// SPDX-License-Identifier: Apache-2.0

// Package reply measures the processor time of replies in this process, of one plugin and of others in turns.
//
// The garbage collector runs between the turns and is not in the times: its cycles are longer than the differences.
package reply

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
	"github.com/clusterset-dns/clusterset-dns/test/bench/servers"
)

// Path is the way of a reply from a plugin to the client.
type Path int

const (
	// Packed packs what the plugin writes, for a client that takes any size.
	Packed Path = iota
	// ScrubbedUDP also does before what the server does for a client over UDP: OPT, the client's size, compression
	// (request.ScrubWriter).
	ScrubbedUDP
)

// client stands in for a connection: it packs what is written, as the server does, and sends it nowhere.
type client struct {
	test.ResponseWriter
	remote net.Addr
	last   *dns.Msg // what was written, where keep is set
	keep   bool
}

// RemoteAddr implements dns.ResponseWriter. It is the same always, as of a connection.
func (c *client) RemoteAddr() net.Addr { return c.remote }

// WriteMsg implements dns.ResponseWriter.
func (c *client) WriteMsg(m *dns.Msg) error {
	if c.keep {
		c.last = m.Copy()
	}
	_, err := m.Pack()
	return err
}

func newClient(path Path) *client {
	if path == ScrubbedUDP {
		return &client{remote: &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1).To4(), Port: 40000}}
	}
	return &client{remote: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1).To4(), Port: 40000}}
}

// wrap returns what a plugin writes a reply to r to.
func (c *client) wrap(path Path, r *dns.Msg) dns.ResponseWriter {
	if path == ScrubbedUDP {
		return request.NewScrubWriter(r, c)
	}
	return c
}

// Ask returns the reply of a handler as the client gets it. It belongs to the caller.
func Ask(ctx context.Context, handler plugin.Handler, path Path, r *dns.Msg) (*dns.Msg, error) {
	c := newClient(path)
	c.keep = true
	if _, err := handler.ServeDNS(ctx, c.wrap(path, r), r); err != nil {
		return nil, fmt.Errorf("ask %s for %s: %w", handler.Name(), r.Question[0].String(), err)
	}
	if c.last == nil {
		return nil, fmt.Errorf("ask %s for %s: nothing was written", handler.Name(), r.Question[0].String())
	}
	return c.last, nil
}

// Cost is the processor time of one reply in each round, in nanoseconds: the median of the round's turns.
type Cost []float64

// Measurement says how to measure.
type Measurement struct {
	// Rounds is how many samples are taken, and Batches how many turns of Batch each handler has in a round.
	Rounds, Batches int
	Batch           time.Duration
}

// Run measures the replies of the handlers to the same query, in turns, and returns the costs in the same order. With
// names, each query is for the next of them. The handlers do not change the query.
func (m Measurement) Run(ctx context.Context, path Path, r *dns.Msg, names []string,
	handlers ...plugin.Handler,
) ([]Cost, error) {
	runners, collected := make([]*runner, len(handlers)), new(uint64)
	for i, handler := range handlers {
		runners[i] = &runner{
			handler: handler, path: path, query: r, names: names, client: newClient(path), collected: collected,
		}
		if err := runners[i].calibrate(ctx, m.Batch); err != nil {
			return nil, err
		}
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	costs := make([]Cost, len(handlers))
	for round := range m.Rounds + 1 {
		for batch := range m.Batches {
			for turn := range runners {
				// Who begins moves on, so that nobody always comes after the same other.
				if err := runners[(turn+batch)%len(runners)].batch(ctx); err != nil {
					return nil, err
				}
			}
		}
		for i, runner := range runners {
			time := runner.take()
			if round == 0 {
				continue // the heap grows into fresh pages, which the kernel has to find and clear
			}
			costs[i] = append(costs[i], time)
		}
	}
	return costs, nil
}

// runner puts one query to one handler.
type runner struct {
	handler plugin.Handler
	path    Path
	query   *dns.Msg
	names   []string // asked for in turn, if there are some
	next    int      // the number of the next one
	client  *client

	size      int       // queries in a turn
	times     []float64 // of a query, in each turn
	collected *uint64   // what had been allocated in all when the garbage was last collected
}

// calibrate finds how many queries take the time.
func (r *runner) calibrate(ctx context.Context, batch time.Duration) error {
	for r.size = 1; ; r.size *= 2 {
		if err := r.batch(ctx); err != nil {
			return err
		}
		time := r.take()
		if time*float64(r.size) >= float64(batch/2) {
			r.size = max(1, int(float64(batch)/time))
			return nil
		}
	}
}

// garbageLimit is how much may be allocated before the garbage is collected: no more than the pages at hand.
const garbageLimit = 32 << 20

// batch takes one turn.
func (r *runner) batch(ctx context.Context) error {
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	if before.TotalAlloc-*r.collected > garbageLimit {
		runtime.GC()
		runtime.ReadMemStats(&before)
		*r.collected = before.TotalAlloc
	}
	began, err := servers.OwnCPU()
	if err != nil {
		return err
	}
	for range r.size {
		if len(r.names) > 0 {
			r.query.Question[0].Name = r.names[r.next]
			r.next = (r.next + 1) % len(r.names)
		}
		if _, err := r.handler.ServeDNS(ctx, r.client.wrap(r.path, r.query), r.query); err != nil {
			return fmt.Errorf("ask %s for %s: %w", r.handler.Name(), r.query.Question[0].String(), err)
		}
	}
	ended, err := servers.OwnCPU()
	if err != nil {
		return err
	}
	r.times = append(r.times, float64(ended-began)/float64(r.size))
	return nil
}

// take returns the time of a query, the median of the turns since it was last called.
func (r *runner) take() float64 {
	time := figure.Median(r.times)
	r.times = nil
	return time
}
