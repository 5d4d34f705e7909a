// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
)

// bin is the folder with the demo and both programs, built from this tree.
var bin string

func TestMain(m *testing.M) {
	if err := process.TieToParent(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	var err error
	if bin, err = programs.Build(context.Background(), "cmd/coredns", "cmd/clusterset-controller", "test/demo"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// demo starts the demo in the root of the repository, with a temporary folder of its own.
func demo(t *testing.T, temporary string, args ...string) (*exec.Cmd, io.Reader) {
	t.Helper()
	command := exec.Command(filepath.Join(bin, "demo"), append([]string{"--bin", bin}, args...)...)
	command.Dir = "../.."
	command.Env = append(os.Environ(), "TMPDIR="+temporary)
	// A pipe of its own: Wait would close the one that StdoutPipe makes before all of it is read.
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stdout, command.Stderr = writer, writer
	if err := process.StartTied(command); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	t.Cleanup(func() { reader.Close() })
	return command, reader
}

func TestStoryEndsWell(t *testing.T) {
	command, out := demo(t, t.TempDir())
	text, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, want := range []string{
		"web.demo.svc.clusterset.local.\t5\tIN\tA\t",
		"SRV\t0 100 5432 db-0.east.db.demo.svc.clusterset.local.",
		"the name is gone from west",
		"== all answers were right",
	} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("the story lacks %q", want)
		}
	}
	t.Logf("%s", text)
}

// held is a demo that waits for Ctrl-C.
type held struct {
	command *exec.Cmd
	servers []string // of DNS
	folder  string   // for temporary files
	pids    []int    // of all that it started
}

func hold(t *testing.T) held {
	t.Helper()
	h := held{folder: t.TempDir()}
	command, out := demo(t, h.folder, "--hold")
	h.command = command
	server := regexp.MustCompile(`dig @(\S+) -p (\d+)`)
	scanner := bufio.NewScanner(out)
	var text strings.Builder
	for scanner.Scan() {
		line := scanner.Text()
		text.WriteString(line + "\n")
		if found := server.FindStringSubmatch(line); found != nil {
			if address := found[1] + ":" + found[2]; !slices.Contains(h.servers, address) {
				h.servers = append(h.servers, address)
			}
		}
		if strings.Contains(line, "kubectl is at ") {
			h.pids = descendants(t, command.Process.Pid)
			return h
		}
	}
	t.Fatalf("the demo ended before it held: %v\n%s", command.Wait(), text.String())
	return held{}
}

func TestHeldDemoAnswersAndEndsOnInterrupt(t *testing.T) {
	h := hold(t)
	if len(h.servers) != 2 || len(h.pids) < 14 {
		t.Fatalf("DNS servers %v, processes %v", h.servers, h.pids)
	}
	for _, server := range h.servers {
		question := new(dns.Msg).SetQuestion(webName, dns.TypeA)
		answer, _, err := (&dns.Client{Timeout: time.Minute}).Exchange(question, server)
		if err != nil || len(answer.Answer) != 1 {
			t.Errorf("%s: %v, %v", server, answer, err)
		}
	}
	if err := h.command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := h.command.Wait(); err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
	awaitEnd(t, h.pids)
	left, err := os.ReadDir(h.folder)
	if err != nil || len(left) > 0 {
		t.Errorf("left in the temporary folder: %v, %v", left, err)
	}
}

func TestKilledDemoLeavesNoProcess(t *testing.T) {
	h := hold(t)
	if err := h.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = h.command.Wait() // it was killed
	awaitEnd(t, h.pids)
}

// descendants are the processes below one.
func descendants(t *testing.T, pid int) []int {
	t.Helper()
	var pids []int
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		children, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(children)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(append(pids, child), descendants(t, child)...)
		}
	}
	return pids
}

// awaitEnd waits until none of the processes runs.
func awaitEnd(t *testing.T, pids []int) {
	t.Helper()
	err := poll(t.Context(), fmt.Sprintf("the end of processes %v", pids), func(context.Context) (bool, error) {
		for _, pid := range pids {
			if syscall.Kill(pid, 0) == nil && !zombie(pid) {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		t.Error(err)
	}
}

// zombie reports whether a process has ended and only waits to be reaped by
// whoever inherited it.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z")
}
