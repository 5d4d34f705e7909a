// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
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

// TestStoryIsTheOneOfTheReadme runs the demo, which checks each of its answers, and finds in what it prints the lines that README.md
// shows, in their order. Numbers, and with them addresses, differ from run to run.
func TestStoryIsTheOneOfTheReadme(t *testing.T) {
	command, out := demo(t, t.TempDir())
	text, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	t.Logf("%s", text)
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, found := strings.Cut(string(readme), "```text\n$ dig ")
	shown, _, closed := strings.Cut(shown, "```")
	if !found || !closed {
		t.Fatal("README.md shows nothing of the demo")
	}
	if line, ok := inOrder("$ dig "+shown, string(text)); !ok {
		t.Errorf("README.md shows %q, which the demo does not print there", line)
	}
}

var digits = regexp.MustCompile(`[0-9]+`)

// inOrder reports whether all lines of a text are in another, in their order and but for numbers, and which one is not.
func inOrder(lines, text string) (string, bool) {
	left := strings.Split(digits.ReplaceAllString(text, "0"), "\n")
	for line := range strings.Lines(lines) {
		line = strings.TrimSuffix(line, "\n")
		at := slices.Index(left, digits.ReplaceAllString(line, "0"))
		if at < 0 {
			return line, false
		}
		left = left[at+1:]
	}
	return "", true
}

func TestInOrder(t *testing.T) {
	const text = "a 1\nb\nc 10.0.0.1\n== all in 7.2 s\n"
	for lines, want := range map[string]string{"a 2\nc 10.9.0.1\n": "", "c 1.1.1.1\n== all in 12.0 s\n": "", "b\na 1\n": "a 1", "d\n": "d", "b\nb\n": "b"} {
		if line, ok := inOrder(lines, text); line != want || ok != (want == "") {
			t.Errorf("of %q %q is missing, want %q", lines, line, want)
		}
	}
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
