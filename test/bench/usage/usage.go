// SPDX-License-Identifier: Apache-2.0

// Package usage tells what processes of this machine use.
package usage

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// CPU is the processor time that a process has used, all its threads together, those that ended too.
func CPU(pid int) (time.Duration, error) {
	// The clock of another process: MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED) of the kernel.
	return clock(int32(^pid<<3 | 2))
}

// OwnCPU is the processor time that this process has used.
func OwnCPU() (time.Duration, error) { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

func clock(id int32) (time.Duration, error) {
	var used unix.Timespec
	if err := unix.ClockGettime(id, &used); err != nil {
		return 0, fmt.Errorf("read the processor time: %w", err)
	}
	return time.Duration(used.Nano()), nil
}

// Memory is what a process holds in memory now, and the most that it held, in octets.
func Memory(pid int) (resident, peak float64, err error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, 0, err
	}
	status, err := process.NewStatus()
	return float64(status.VmRSS), float64(status.VmHWM), err
}

// LiveHeap collects the garbage of a process, which serves net/http/pprof at an address, and returns what is left, in
// octets.
func LiveHeap(ctx context.Context, address string) (float64, error) {
	var text string
	for range 3 { // finalizers and pools let go of some of it only at the second time
		var err error
		if text, err = Get(ctx, "http://"+address+"/debug/pprof/heap?gc=1&debug=1"); err != nil {
			return 0, err
		}
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, "# HeapAlloc = "); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("the heap profile at %s has no HeapAlloc", address)
}

// Get returns what a URL serves.
func Get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("get %s: %s", url, response.Status)
	}
	return string(content), err
}
