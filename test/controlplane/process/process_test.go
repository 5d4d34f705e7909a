// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// helperVariable makes the test binary a child that ties itself to its parent, and that starts its own child, which
// does not tie itself.
const helperVariable = "PROCESS_TEST_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperVariable) == "" {
		os.Exit(m.Run())
	}
	err := process.TieToParent()
	if err == nil {
		var last *process.Process
		last, err = process.Start(process.Spec{Name: "last", Path: "/bin/sleep", Args: []string{"1000"}, LogFile: os.DevNull})
		if err == nil {
			fmt.Println(last.PID())
			select {}
		}
	}
	fmt.Println(err)
	os.Exit(1)
}

// A child dies with its parent, whether the parent tied it or it tied itself.
func TestChildDiesWithItsParent(t *testing.T) {
	parent := exec.Command("/bin/sh", "-c", `"$0"; exit`, os.Args[0])
	parent.Env = append(os.Environ(), helperVariable+"=1")
	// Not StdoutPipe: it would also wait until the grandchild closes it.
	reader, writer, err := os.Pipe()
	controlplanetest.Must(t, err)
	defer reader.Close()
	parent.Stdout = writer
	controlplanetest.Must(t, process.StartTied(parent))
	writer.Close()
	defer func() { _ = parent.Process.Kill() }()

	line, err := bufio.NewReader(reader).ReadString('\n')
	controlplanetest.Must(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("the helper failed: %s", line)
	}
	child, err := unix.PidfdOpen(pid, 0)
	controlplanetest.Must(t, err)
	defer unix.Close(child)

	controlplanetest.Must(t, parent.Process.Kill())
	_ = parent.Wait()
	poll := []unix.PollFd{{Fd: int32(child), Events: unix.POLLIN}} // readable after the process has ended
	if count, err := unix.Poll(poll, 10_000); err != nil || count != 1 {
		t.Errorf("the child survives: %v", err)
	}
}
