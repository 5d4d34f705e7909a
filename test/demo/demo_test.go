// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	dns "github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// variable makes the test binary run the demo, so that no other binary is linked.
const variable = "CLUSTERSET_DNS_DEMO"

func TestMain(m *testing.M) {
	if os.Getenv(variable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestDemo runs the demo, which checks each answer, until it waits for Ctrl-C. The output has the lines of the
// recording in README.md, the demo's servers answer, and Ctrl-C leaves nothing behind.
func TestDemo(t *testing.T) {
	folder := t.TempDir()
	self, err := os.Executable()
	controlplanetest.Must(t, err)
	command := exec.Command(self, "--hold")
	command.Dir = filepath.Join("..", "..")
	command.Env = append(os.Environ(), "TMPDIR="+folder, variable+"=1")
	out, writer, err := os.Pipe()
	controlplanetest.Must(t, err)
	defer out.Close()
	command.Stdout, command.Stderr = writer, writer
	controlplanetest.Must(t, process.StartTied(command))
	writer.Close()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // it has usually ended by itself
	})
	var printed []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if printed = append(printed, lines.Text()); strings.Contains(lines.Text(), "Ctrl-C ends the demo") {
			break
		}
	}
	text := strings.Join(printed, "\n")
	t.Log(text)
	hasRecording(t, text)
	servers := regexp.MustCompile(`DNS at ([0-9.:]+), the controller's metrics`).FindAllStringSubmatch(text, -1)
	if count := running(t, folder); len(servers) != 2 || count != 7 { // the demo, and in each cluster CoreDNS and the controller
		t.Errorf("DNS servers %v, %d processes", servers, count)
	}
	for _, server := range servers {
		if answer, err := dns.DNSAt(server[1]).Ask(t.Context(), webName, "A"); err != nil || len(answer.Records) != 1 {
			t.Errorf("%s: %v, %v", server[1], answer, err)
		}
	}
	controlplanetest.Must(t, command.Process.Signal(os.Interrupt))
	controlplanetest.Must(t, command.Wait())
	err = wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) { return running(t, folder) == 0, nil })
	if left, unread := os.ReadDir(folder); err != nil || unread != nil || len(left) > 0 {
		t.Errorf("after Ctrl-C: %v, %v; left in the temporary folder: %v", err, unread, left)
	}
}

var digits = regexp.MustCompile(`[0-9]+`)

// hasRecording checks that the output has the lines of the recording, in their order. Numbers and addresses differ
// between runs.
func hasRecording(t *testing.T, printed string) {
	recording, err := os.ReadFile(filepath.Join("..", "..", "docs", "demo.svg"))
	controlplanetest.Must(t, err)
	left := strings.Split(digits.ReplaceAllString(strings.ReplaceAll(printed, "\t", "  "), "0"), "\n")
	lines := regexp.MustCompile("<text.*?>(.*)</text>").FindAllStringSubmatch(string(recording), -1)
	if len(lines) < 50 {
		t.Errorf("docs/demo.svg has only %d lines", len(lines))
	}
	for _, each := range lines {
		line := html.UnescapeString(each[1])
		if strings.Contains(line, "kubeconfig=") { // the path differs
			continue
		}
		at := slices.Index(left, digits.ReplaceAllString(line, "0"))
		if at < 0 {
			t.Fatalf("docs/demo.svg has %q, which the demo does not print there; record it again: make recording", line)
		}
		left = left[at+1:]
	}
}

// running counts the processes that use this folder for temporary files: the demo and the processes that it started.
func running(t *testing.T, folder string) (count int) {
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	controlplanetest.Must(t, err)
	for _, file := range environments {
		if environment, err := os.ReadFile(file); err == nil &&
			strings.Contains(string(environment), "TMPDIR="+folder) {
			count++
		}
	}
	return count
}
