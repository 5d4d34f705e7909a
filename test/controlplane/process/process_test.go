// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// helperVariable makes the test binary one of the programs of runHelper.
const helperVariable = "PROCESS_TEST_HELPER"

func TestMain(m *testing.M) {
	if helper := os.Getenv(helperVariable); helper != "" {
		if err := runHelper(helper); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func runHelper(helper string) error {
	switch helper {
	case "parent": // of a child that does nothing to be tied
		child, err := process.Start(process.Spec{Name: "child", Path: "/bin/sh", Args: []string{"-c", "exec sleep 1000"}, LogFile: os.DevNull})
		if err != nil {
			return err
		}
		fmt.Println(child.PID())
	case "plain parent": // of a child that ties itself
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), helperVariable+"=child")
		child.Stdout = os.Stdout
		if err := child.Start(); err != nil {
			return err
		}
	case "child":
		if err := process.TieToParent(); err != nil {
			return err
		}
		fmt.Println(os.Getpid())
	}
	select {}
}

// A child dies with its parent, tied by the parent or by itself.
func TestChildDiesWithItsParent(t *testing.T) {
	for _, helper := range []string{"parent", "plain parent"} {
		t.Run(helper, func(t *testing.T) {
			parent := exec.Command(os.Args[0])
			parent.Env = append(os.Environ(), helperVariable+"="+helper)
			// Not StdoutPipe: it would wait for the child to close it, too.
			reader, writer, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			parent.Stdout = writer
			if err := process.StartTied(parent); err != nil {
				t.Fatal(err)
			}
			writer.Close()
			defer func() { _ = parent.Process.Kill() }()

			line, err := bufio.NewReader(reader).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil {
				t.Fatalf("the helper failed: %s", line)
			}
			child, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(child)

			if err := parent.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = parent.Wait()
			poll := []unix.PollFd{{Fd: int32(child), Events: unix.POLLIN}} // readable once the process has ended
			if count, err := unix.Poll(poll, 10_000); err != nil || count != 1 {
				t.Errorf("the child survives: %v", err)
			}
		})
	}
}

// start runs a shell script, which ends with the test.
func start(t *testing.T, script string) *process.Process {
	t.Helper()
	p, err := process.Start(process.Spec{
		Name: "script", Path: "/bin/sh", Args: []string{"-c", script}, LogFile: filepath.Join(t.TempDir(), "log"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// says waits until the log of p contains text.
func says(t *testing.T, p *process.Process, text string) {
	t.Helper()
	for deadline := time.After(20 * time.Second); !strings.Contains(p.LogTail(1000), text); {
		select {
		case <-deadline:
			t.Fatalf("the log lacks %q: %s", text, p.LogTail(1000))
		case <-time.After(time.Millisecond):
		}
	}
}

func ended(t *testing.T, p *process.Process) {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
	}
	if p.Running() {
		t.Error("it runs and has ended")
	}
}

const forever = "while :; do sleep 0.01; done"

func TestStopLetsTheProcessEnd(t *testing.T) {
	p := start(t, "trap 'echo cleaning up; exit 0' TERM; echo started; "+forever)
	says(t, p, "started")
	if !p.Running() || p.Err() != nil {
		t.Errorf("running: %t, %v", p.Running(), p.Err())
	}
	if err := p.Stop(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	ended(t, p)
	says(t, p, "cleaning up")
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "exit status 0") {
		t.Errorf("how it ended: %v", err)
	}
	if err := errors.Join(p.Stop(t.Context(), 0), p.Kill(), p.Freeze(), p.Thaw()); err != nil {
		t.Errorf("signals to a process that has ended: %v", err)
	}
}

func TestStopThawsAFrozenProcess(t *testing.T) {
	p := start(t, "trap 'echo cleaning up; exit 0' TERM; echo started; "+forever)
	says(t, p, "started")
	if err := p.Freeze(); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	says(t, p, "cleaning up")
}

func TestStopKillsWhatDoesNotEnd(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, stop := range map[string]func(*process.Process) error{
		"after grace": func(p *process.Process) error { return p.Stop(t.Context(), 10*time.Millisecond) },
		"when told":   func(p *process.Process) error { return p.Stop(cancelled, time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, "trap '' TERM; echo started; "+forever)
			says(t, p, "started")
			if err := stop(p); err != nil {
				t.Fatal(err)
			}
			ended(t, p)
			if err := p.Err(); err == nil || !strings.Contains(err.Error(), "signal: killed") {
				t.Errorf("how it ended: %v", err)
			}
		})
	}
}

func TestFreeze(t *testing.T) {
	p := start(t, "echo started; "+forever)
	says(t, p, "started")
	state := func() byte {
		content, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID()), "stat"))
		if err != nil {
			t.Fatal(err)
		}
		return content[strings.LastIndexByte(string(content), ')')+2]
	}
	for range 2 { // the second time without effect
		if err := p.Freeze(); err != nil {
			t.Fatal(err)
		}
		if state() != 'T' {
			t.Fatalf("the state of a frozen process is %c", state())
		}
	}
	if !p.Running() {
		t.Error("a frozen process does not count as running")
	}
	if err := p.Thaw(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.After(20 * time.Second); state() == 'T'; {
		select {
		case <-deadline:
			t.Fatal("it is frozen for ever")
		case <-time.After(time.Millisecond):
		}
	}
}

// The Ctrl-C of a terminal goes to the foreground process group, which children are not in.
func TestChildLeadsItsOwnGroup(t *testing.T) {
	p := start(t, forever)
	group, err := syscall.Getpgid(p.PID())
	if err != nil || group != p.PID() {
		t.Errorf("process %d is in group %d: %v", p.PID(), group, err)
	}
}

func TestErrQuotesTheLog(t *testing.T) {
	p := start(t, "echo all is lost >&2; exit 3")
	ended(t, p)
	for _, want := range []string{"script", "exit status 3", "all is lost"} {
		if err := p.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
}

func TestStartFails(t *testing.T) {
	for name, spec := range map[string]process.Spec{
		"no such program": {Name: "absent", Path: "/nonexistent/program", LogFile: os.DevNull},
		"no such log":     {Name: "absent", Path: "/bin/sh", LogFile: "/nonexistent/log"},
	} {
		if p, err := process.Start(spec); err == nil || !strings.Contains(err.Error(), "absent") {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
}

func TestLogTail(t *testing.T) {
	p := start(t, "printf 'one\\ntwo\\nthree\\n'")
	ended(t, p)
	for limit, want := range map[int64]string{100: "one\ntwo\nthree\n", 14: "one\ntwo\nthree\n", 13: "two\nthree\n", 10: "three\n", 7: "three\n", 1: ""} {
		if got := p.LogTail(limit); got != want {
			t.Errorf("the last %d bytes in whole lines are %q, want %q", limit, got, want)
		}
	}
}
