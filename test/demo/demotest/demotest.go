// SPDX-License-Identifier: Apache-2.0

// Package demotest tests a demo. The binary of its test is the demo itself, so that nothing more is linked.
package demotest

import (
	"bufio"
	"context"
	"errors"
	"html"
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
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// variable has the binary of a test be the demo.
const variable = "CLUSTERSET_DNS_DEMO"

// Main runs the demo, whose main function is given, if this process is one that the tests started, or else the tests.
func Main(demo func(), tests func()) {
	if os.Getenv(variable) != "" {
		demo()
		return
	}
	tests()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// self is this executable.
func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	must(t, err)
	return path
}

// root is the checkout.
func root(t *testing.T) string {
	t.Helper()
	for folder, err := os.Getwd(); ; folder = filepath.Dir(folder) {
		must(t, err)
		if _, err := os.Stat(filepath.Join(folder, "go.work")); err == nil {
			return folder
		}
		if folder == filepath.Dir(folder) {
			t.Fatal("this is no checkout")
		}
	}
}

// start starts a demo in the root of the checkout, with a temporary folder of its own.
func start(t *testing.T, program, temporary string, args ...string) (*exec.Cmd, io.Reader) {
	t.Helper()
	command := exec.Command(program, args...)
	command.Dir = root(t)
	command.Env = append(os.Environ(), "TMPDIR="+temporary, variable+"=1")
	// A pipe of its own: Wait would close the one that StdoutPipe makes before all of it is read.
	reader, writer, err := os.Pipe()
	must(t, err)
	command.Stdout, command.Stderr = writer, writer
	must(t, process.StartTied(command))
	writer.Close()
	t.Cleanup(func() { reader.Close() })
	return command, reader
}

// Story runs the demo, which checks each of its answers, and finds in what it prints the lines of the recording in
// README.md, in their order. Numbers, and with them addresses, differ from run to run.
func Story(t *testing.T) {
	command, out := start(t, self(t), t.TempDir())
	text, err := io.ReadAll(out)
	must(t, err)
	if err := command.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	t.Logf("%s", text)
	recording, err := os.ReadFile(filepath.Join(root(t), "docs", "demo.svg"))
	must(t, err)
	var recorded []string
	for _, each := range regexp.MustCompile("<text.*?>(.*)</text>").FindAllStringSubmatch(string(recording), -1) {
		// A path differs, and so does what the demo runs on.
		if !strings.Contains(each[1], "kubeconfig=") && !strings.HasPrefix(each[1], "   real:") &&
			!strings.HasPrefix(each[1], "   model:") {
			recorded = append(recorded, html.UnescapeString(each[1]))
		}
	}
	printed := strings.ReplaceAll(string(text), "\t", "  ")
	if line, ok := inOrder(strings.Join(recorded, "\n"), printed); !ok || recorded == nil {
		t.Errorf("docs/demo.svg has %q, which the demo does not print there; record it again: make recording", line)
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

// A Held is a demo that waits for Ctrl-C.
type Held struct {
	// Config is the path of a kubeconfig with the contexts east and west.
	Config  string
	command *exec.Cmd
	servers []string // of DNS
	folder  string   // for temporary files
}

// Hold starts a demo, of the given path, that waits for Ctrl-C. It ends with the test at the latest.
func Hold(t *testing.T, program string) Held {
	t.Helper()
	h := Held{folder: t.TempDir()}
	command, out := start(t, program, h.folder, "--hold")
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // it has, as a rule
	})
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
		if _, after, found := strings.Cut(line, "export KUBECONFIG="); found {
			h.Config, _, _ = strings.Cut(after, " ")
		}
		if strings.Contains(line, "Ctrl-C ends the demo") {
			return h
		}
	}
	t.Fatalf("the demo ended before it held: %v\n%s", command.Wait(), text.String())
	return Held{}
}

// Ends has a held demo answer, and ends it: by Ctrl-C, after which nothing is left, and by SIGKILL. The demo has so many
// processes, with itself.
func Ends(t *testing.T, processes int) {
	for name, signal := range map[string]os.Signal{"Ctrl-C": os.Interrupt, "SIGKILL": os.Kill} {
		t.Run(name, func(t *testing.T) {
			h := Hold(t, self(t))
			if count := running(t, h.folder); len(h.servers) != 2 || count != processes {
				t.Fatalf("DNS servers %v, %d processes", h.servers, count)
			}
			for _, server := range h.servers {
				question := new(dns.Msg).SetQuestion("web.demo.svc.clusterset.local.", dns.TypeA)
				answer, _, err := (&dns.Client{Timeout: time.Minute}).Exchange(question, server)
				if err != nil || len(answer.Answer) != 1 {
					t.Errorf("%s: %v, %v", server, answer, err)
				}
			}
			must(t, h.command.Process.Signal(signal))
			err := h.command.Wait()
			awaitEnd(t, h.folder)
			if signal == os.Kill {
				return
			}
			left, unread := os.ReadDir(h.folder)
			if err := errors.Join(err, unread); err != nil || len(left) > 0 {
				t.Errorf("after Ctrl-C: %v; left in the temporary folder: %v", err, left)
			}
		})
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
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) { return running(t, folder) == 0, nil })
	if err != nil {
		t.Errorf("processes are left: %v", err)
	}
}
