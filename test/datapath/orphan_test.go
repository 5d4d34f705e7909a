// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/network"
)

// orphanVariable makes the test binary a program that makes a small network and waits to be killed.
const orphanVariable = "CLUSTERSET_DNS_ORPHAN"

// runOrphan makes a namespace with a process that has left its parent, prints "done", and waits to be killed.
func runOrphan() {
	fail := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	made, err := network.New()
	fail(err)
	fail(router.Attach(made, []netip.Addr{netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("fd00::2")}))
	// The shell in between ends at once, and no promise of it holds for what it leaves.
	line := made.Command("", "sh", "-c", "sleep infinity & echo done")
	command := exec.Command(line[0], line[1:]...)
	command.Stdout = os.Stdout
	fail(process.StartTied(command))
	select {}
}

// Nothing is left of a bed that is killed, without any cleanup of its own: no process, and with the last process its
// namespaces are gone, which nothing else holds.
func TestNothingSurvivesSIGKILL(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "mark")
	bed := exec.Command("/proc/self/exe")
	bed.Env = append(withoutVariable(os.Environ(), "CLUSTERSET_DNS_SANDBOX"), orphanVariable+"="+mark)
	var stderr bytes.Buffer
	bed.Stderr = &stderr
	output, err := bed.StdoutPipe()
	must(t, err)
	must(t, process.StartTied(bed))
	defer func() { _ = bed.Process.Kill() }()

	scanner := bufio.NewScanner(output)
	if !scanner.Scan() || scanner.Text() != "done" {
		t.Fatalf("the bed says %q\n%s", scanner.Text(), stderr.String())
	}
	before := marked(t, mark)
	if namespaces := namespacesOf(before); len(before) < 3 || len(namespaces) != 3 {
		t.Fatalf("processes %v in the namespaces %v, want at least three: outside, inside and in the network", before, namespaces)
	}
	must(t, bed.Process.Kill())
	_ = bed.Wait()
	eventually(t, "the end of all processes", func(ctx context.Context) error {
		if left := marked(t, mark); len(left) > 0 {
			return fmt.Errorf("left: %v", left)
		}
		return nil
	})
}

// marked are the network namespaces of the processes whose environment has the mark, by process id.
func marked(t *testing.T, mark string) map[string]string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	must(t, err)
	found := map[string]string{}
	for _, file := range files {
		environment, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(environment, []byte(orphanVariable+"="+mark)) {
			continue // it has ended, or is somebody else's
		}
		process := filepath.Dir(file)
		if namespace, err := os.Readlink(filepath.Join(process, "ns", "net")); err == nil {
			found[process] = namespace
		}
	}
	return found
}

func namespacesOf(processes map[string]string) map[string]bool {
	namespaces := map[string]bool{}
	for _, namespace := range processes {
		namespaces[namespace] = true
	}
	return namespaces
}

func withoutVariable(environment []string, name string) []string {
	var rest []string
	for _, variable := range environment {
		if !strings.HasPrefix(variable, name+"=") {
			rest = append(rest, variable)
		}
	}
	return rest
}
