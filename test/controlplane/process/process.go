// SPDX-License-Identifier: Apache-2.0

// Package process runs child processes that cannot outlive this one, and manages the resources that such processes
// share on a machine: ports, locks, and temporary directories.
//
// The kernel sends SIGKILL to every child when this process dies, however it dies (prctl(2), PR_SET_PDEATHSIG). It does
// so when the thread that forked the child ends, so all children are forked from one thread that lives as long as the
// process.
//
// Each child leads its own process group: a Ctrl-C in the terminal reaches only this process, which then stops its
// children in the order that it needs.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Spec describes a process. Start does not change it.
type Spec struct {
	// Name is the name of the process in errors.
	Name string
	// Path is the program, absolute or relative to Dir.
	Path string
	// Args are its arguments, without the program itself.
	Args []string
	// Env is its entire environment, as in [exec.Cmd]; nil means the environment of this process.
	Env []string
	// Dir is its working directory; empty means the working directory of this process.
	Dir string
	// LogFile is the file to which its standard output and standard error are appended.
	LogFile string
}

// Process is a running or ended child. Its methods may be called from any goroutine, and more than once.
type Process struct {
	spec Spec
	cmd  *exec.Cmd
	done chan struct{}
	err  error       // of cmd.Wait; written before done is closed
	told atomic.Bool // whether it was told to end
}

// Start starts a process. The kernel kills it when this process dies.
func Start(spec Spec) (*Process, error) {
	log, err := os.OpenFile(spec.LogFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: open its log: %w", spec.Name, err)
	}
	defer log.Close() // the child has its own descriptor

	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Env, cmd.Dir = spec.Env, spec.Dir
	cmd.Stdout, cmd.Stderr = log, log
	if err := StartTied(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	p := &Process{spec: spec, cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Name returns the name in the Spec.
func (p *Process) Name() string { return p.spec.Name }

// PID returns the process id of the child, even after its end.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed once the child has ended and is reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Running reports whether the child has not ended yet. A frozen child is running.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Err returns nil while the child runs, and after it ended because of Stop or Kill. If the child ended by itself, even
// with status 0, Err returns how it ended, with the end of its log.
func (p *Process) Err() error {
	if p.Running() || p.told.Load() {
		return nil
	}
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("%s (process %d) ended: %s; the end of %s:\n%s", p.spec.Name, p.PID(), how, p.spec.LogFile,
		p.LogTail(4096))
}

// Stop asks the child to end (SIGTERM), and kills it if it has not ended after grace or when ctx is done. It returns
// once the child has ended. A frozen child is thawed first.
func (p *Process) Stop(ctx context.Context, grace time.Duration) error {
	p.told.Store(true)
	if err := p.send(syscall.SIGTERM, syscall.SIGCONT); err != nil {
		return err
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
	case <-ctx.Done():
	}
	return p.Kill()
}

// Kill kills the child (SIGKILL), and returns once it has ended.
func (p *Process) Kill() error {
	p.told.Store(true)
	if err := p.send(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// Freeze pauses the child (SIGSTOP): its sockets stay open and accept connections up to their backlog, but it does not
// answer. It returns once no thread of the child runs.
func (p *Process) Freeze() error {
	if err := p.send(syscall.SIGSTOP); err != nil {
		return err
	}
	for {
		// WNOWAIT keeps the state for cmd.Wait. A child that has ended no longer exists.
		err := unix.Waitid(unix.P_PID, p.PID(), nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		switch {
		case err == nil, errors.Is(err, unix.ECHILD):
			return nil
		case !errors.Is(err, unix.EINTR):
			return fmt.Errorf("wait for %s (process %d) to stop: %w", p.spec.Name, p.PID(), err)
		}
	}
}

// Thaw resumes a frozen child (SIGCONT).
func (p *Process) Thaw() error { return p.send(syscall.SIGCONT) }

// send sends signals in order. It does nothing if the child has ended.
func (p *Process) send(signals ...syscall.Signal) error {
	for _, signal := range signals {
		if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("send %v to %s (process %d): %w", signal, p.spec.Name, p.PID(), err)
		}
	}
	return nil
}

// LogTail returns the end of the child's log: whole lines, at most limit bytes.
func (p *Process) LogTail(limit int) string {
	log, err := os.ReadFile(p.spec.LogFile)
	if err != nil {
		return err.Error()
	}
	if long := len(log) - limit; long > 0 {
		_, log, _ = bytes.Cut(log[long:], []byte("\n"))
	}
	return string(log)
}
