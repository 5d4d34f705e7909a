// SPDX-License-Identifier: Apache-2.0

// Package process runs child processes that cannot outlive this one, and has what such processes share a machine by: ports,
// locks, and directories that do not pile up.
//
// Every child gets SIGKILL from the kernel when this process dies, whatever it dies of (prctl(2), PR_SET_PDEATHSIG).
// The kernel binds that promise to the thread that forked, so all children are forked from one thread that lives as
// long as the process.
//
// A child leads a process group of its own: a Ctrl-C in the terminal reaches
// this process alone, which then takes its children down in the order it wants.
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

// Spec says what to run. It is not changed by Start.
type Spec struct {
	// Name stands for the process in errors.
	Name string
	// Path is the program, absolute or relative to Dir.
	Path string
	// Args are its arguments, without the program itself.
	Args []string
	// Env is its whole environment, as in [exec.Cmd]; nil means that of this process.
	Env []string
	// Dir is its working directory; empty means that of this process.
	Dir string
	// LogFile gets what it writes to standard output and standard error, appended.
	LogFile string
}

// Process is a running or ended child. All methods may be called from any goroutine, and more than once.
type Process struct {
	spec Spec
	cmd  *exec.Cmd
	done chan struct{}
	err  error       // of cmd.Wait; written before done is closed
	told atomic.Bool // to end
}

// Start runs spec. The child is killed when this process dies.
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

// Name stands for the process.
func (p *Process) Name() string { return p.spec.Name }

// PID is the process id of the child, also after its end.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed once the child has ended and is reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Running tells whether the child has not ended yet. A frozen child runs.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Err is nil while the child runs, and if it was told to end by Stop or Kill. If it ended by itself, Err says how, and quotes
// the end of its log, also where that was with status 0.
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

// Stop asks the child to end (SIGTERM), waits for it, and kills it where it has not ended after grace or when ctx is
// done. It returns once the child has ended; a frozen child is thawed for it.
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

// Kill ends the child by SIGKILL, and returns once it has ended.
func (p *Process) Kill() error {
	p.told.Store(true)
	if err := p.send(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// Freeze stops the child's execution (SIGSTOP): it keeps its sockets, which accept connections up to their backlog, and
// answers nothing. It returns once no thread of the child runs.
func (p *Process) Freeze() error {
	if err := p.send(syscall.SIGSTOP); err != nil {
		return err
	}
	for {
		// The state stays to be waited for. A child that has ended is not there any more.
		err := unix.Waitid(unix.P_PID, p.PID(), nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		switch {
		case err == nil, errors.Is(err, unix.ECHILD):
			return nil
		case !errors.Is(err, unix.EINTR):
			return fmt.Errorf("wait for %s (process %d) to stop: %w", p.spec.Name, p.PID(), err)
		}
	}
}

// Thaw lets a frozen child go on (SIGCONT).
func (p *Process) Thaw() error { return p.send(syscall.SIGCONT) }

// send sends signals in turn; to an ended child it sends nothing.
func (p *Process) send(signals ...syscall.Signal) error {
	for _, signal := range signals {
		if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("send %v to %s (process %d): %w", signal, p.spec.Name, p.PID(), err)
		}
	}
	return nil
}

// LogTail is the end of the child's log: whole lines, at most limit bytes.
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
