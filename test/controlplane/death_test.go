// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// helperVariable makes the test binary a program that starts a cluster and waits to be killed.
const helperVariable = "CONTROLPLANE_TEST_HELPER"

// runHelper starts a cluster and prints the process ids of its components, one line each, and then "done".
func runHelper() {
	cluster, err := controlplane.Start(context.Background(), controlplane.Options{Name: "orphan"})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for _, component := range cluster.Components() {
		fmt.Println(component.PID())
	}
	fmt.Println("done")
	select {}
}

// Nothing survives the death of the program that started a cluster, and no signal handler can help it: the kernel
// does it.
func TestNothingSurvivesSIGKILL(t *testing.T) {
	t.Parallel()
	temporary := t.TempDir()
	var stderr bytes.Buffer
	helper := exec.Command(os.Args[0])
	helper.Env = append(os.Environ(), helperVariable+"=cluster", "TMPDIR="+temporary)
	helper.Stderr = &stderr
	output, err := helper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.StartTied(helper); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = helper.Process.Kill() }()

	var lines []string
	for scanner := bufio.NewScanner(output); scanner.Scan() && scanner.Text() != "done"; {
		lines = append(lines, scanner.Text())
	}
	components := map[int]int{} // process id → a descriptor of that very process
	for _, line := range lines {
		pid, err := strconv.Atoi(line)
		if err != nil {
			t.Fatalf("the helper failed: %s\n%s", strings.Join(lines, "\n"), stderr.String())
		}
		if components[pid], err = unix.PidfdOpen(pid, 0); err != nil {
			t.Fatal(err)
		}
		defer unix.Close(components[pid])
	}
	if len(components) != 5 {
		t.Fatalf("the helper's cluster has the processes %v", lines)
	}
	if found := runningIn(t, temporary); found != 5 {
		t.Fatalf("%d processes work in %s before the kill, want 5", found, temporary)
	}

	if err := helper.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = helper.Wait()
	for pid, descriptor := range components {
		poll := []unix.PollFd{{Fd: int32(descriptor), Events: unix.POLLIN}} // readable once the process has ended
		count, err := unix.Poll(poll, int((20 * time.Second).Milliseconds()))
		if err != nil || count != 1 {
			t.Errorf("process %d survives: %v", pid, err)
		}
	}
	if found := runningIn(t, temporary); found != 0 {
		t.Errorf("%d processes work in %s after the kill", found, temporary)
	}
}

// runningIn counts the processes whose working directory is below directory.
func runningIn(t *testing.T, directory string) (count int) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, directory+"/") {
			count++
		}
	}
	return count
}
