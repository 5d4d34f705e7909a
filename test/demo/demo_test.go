// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

var must = controlplanetest.Must

// demo starts the demo in the root of the repository, with a temporary folder of its own.
func demo(t *testing.T, temporary string, args ...string) (*exec.Cmd, io.Reader) {
	t.Helper()
	bin, err := programs.Build(t.Context(), "cmd/coredns", "cmd/clusterset-controller", "cmd/kubectl-clusterset", "test/demo")
	must(t, err)
	command := exec.Command(filepath.Join(bin, "demo"), append([]string{"--bin", bin}, args...)...)
	command.Dir = "../.."
	command.Env = append(os.Environ(), "TMPDIR="+temporary)
	// A pipe of its own: Wait would close the one that StdoutPipe makes before all of it is read.
	reader, writer, err := os.Pipe()
	must(t, err)
	command.Stdout, command.Stderr = writer, writer
	must(t, process.StartTied(command))
	writer.Close()
	t.Cleanup(func() { reader.Close() })
	return command, reader
}

// TestStoryIsTheOneOfTheReadme runs the demo, which checks each of its answers, and finds in what it prints the lines
// that README.md shows, in their order. Numbers, and with them addresses, differ from run to run.
func TestStoryIsTheOneOfTheReadme(t *testing.T) {
	command, out := demo(t, t.TempDir())
	text, err := io.ReadAll(out)
	must(t, err)
	if err := command.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	t.Logf("%s", text)
	readme, err := os.ReadFile("../../README.md")
	must(t, err)
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

// held is a demo that waits for Ctrl-C.
type held struct {
	command *exec.Cmd
	servers []string // of DNS
	folder  string   // for temporary files
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
			return h
		}
	}
	t.Fatalf("the demo ended before it held: %v\n%s", command.Wait(), text.String())
	return held{}
}

func TestHeldDemoAnswersAndEndsOnInterrupt(t *testing.T) {
	h := hold(t)
	// Of each cluster there are five components, CoreDNS and the controller.
	if count := running(t, h.folder); len(h.servers) != 2 || count != 15 {
		t.Fatalf("DNS servers %v, %d processes", h.servers, count)
	}
	for _, server := range h.servers {
		question := new(dns.Msg).SetQuestion(webName, dns.TypeA)
		answer, _, err := (&dns.Client{Timeout: time.Minute}).Exchange(question, server)
		if err != nil || len(answer.Answer) != 1 {
			t.Errorf("%s: %v, %v", server, answer, err)
		}
	}
	must(t, h.command.Process.Signal(os.Interrupt))
	if err := h.command.Wait(); err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
	awaitEnd(t, h.folder)
	left, err := os.ReadDir(h.folder)
	if err != nil || len(left) > 0 {
		t.Errorf("left in the temporary folder: %v, %v", left, err)
	}
}

// running counts the processes whose folder for temporary files this is: the demo and all that it started.
func running(t *testing.T, folder string) (count int) {
	t.Helper()
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	must(t, err)
	for _, file := range environments {
		if environment, err := os.ReadFile(file); err == nil &&
			strings.Contains(string(environment), "TMPDIR="+folder) {
			count++
		}
	}
	return count
}

func awaitEnd(t *testing.T, folder string) {
	t.Helper()
	err := poll(t.Context(), "the end of all processes",
		func(context.Context) (bool, error) { return running(t, folder) == 0, nil })
	if err != nil {
		t.Error(err)
	}
}
