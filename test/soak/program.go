// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
)

// restartAfter is how long a program that ended stays down, unless a fault
// keeps it down for longer. A kubelet is no faster.
const restartAfter = time.Second

// A program is one of a cluster's two, which is started again when it ends.
type program struct {
	name  string
	start func() (*clusterset.Program, error)
	// down is told before the program ends, or after it ended by itself; up before it is started.
	down, up func()
	journal  *journal

	gate sync.Mutex // held while the program is kept down

	mu      sync.Mutex
	current *clusterset.Program
	told    bool // that it is down
}

// run keeps the program running until the context ends, and then stops it.
func (p *program) run(ctx context.Context) {
	for ctx.Err() == nil {
		p.gate.Lock()
		started, err := p.begin()
		p.gate.Unlock()
		if err != nil {
			p.journal.wrong("%s cannot be started: %v", p.name, err)
		} else {
			select {
			case <-started.Done():
				p.ended(started)
			case <-ctx.Done():
				if err := started.Stop(context.WithoutCancel(ctx), 5*time.Second); err != nil {
					p.journal.wrong("%v", err)
				}
			}
		}
		pause(ctx, restartAfter)
	}
}

func (p *program) begin() (*clusterset.Program, error) {
	p.up()
	started, err := p.start()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = err != nil
	if err != nil {
		p.down()
		return nil, err
	}
	p.current = started
	return started, nil
}

// ended notes that a program has ended.
func (p *program) ended(program *clusterset.Program) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told {
		return
	}
	p.told = true
	p.down()
	p.journal.wrong("%s ended by itself: %v", p.name, program.Err())
}

// running is the process that there is, nil where there is none.
func (p *program) running() *clusterset.Program {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told {
		return nil
	}
	return p.current
}

// keepDown ends the program by end, and keeps it down until the function that it returns is called.
func (p *program) keepDown(ctx context.Context,
	end func(context.Context, *clusterset.Program) error,
) (release func(), err error) {
	p.gate.Lock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.told && p.current != nil {
		p.told = true
		p.down()
		if err := end(ctx, p.current); err != nil {
			p.gate.Unlock()
			return nil, err
		}
	}
	return p.gate.Unlock, nil
}

// pause returns after a time, or when the context ends.
func pause(ctx context.Context, duration time.Duration) {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// eventually calls check until it is nil.
func eventually(ctx context.Context, what string, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true,
		func(ctx context.Context) (bool, error) {
			err := check(ctx)
			if ctx.Err() == nil || last == nil {
				last = err // and not that the time is over
			}
			return err == nil, nil
		})
	if err != nil {
		return fmt.Errorf("%s: not within %s: %w", what, patience, last)
	}
	return nil
}
