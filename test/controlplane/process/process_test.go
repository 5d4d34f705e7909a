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
		child, err := process.Start(process.Spec{
			Name: "child", Path: "/bin/sh", Args: []string{"-c", "exec sleep 1000"}, LogFile: os.DevNull,
		})
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
