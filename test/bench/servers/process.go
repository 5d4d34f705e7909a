// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// Process is a running process and what it uses.
type Process struct {
	*process.Process
	// Debug is where it serves net/http/pprof.
	Debug string
}

// CPU is the processor time that the process has used, all its threads together, those that ended too.
func (p *Process) CPU() (time.Duration, error) {
	// The clock of another process: MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED) of the kernel.
	return clock(int32(^p.PID()<<3 | 2))
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

// Memory is what the process holds in memory now, and the most that it held, in octets.
func (p *Process) Memory() (resident, peak float64, err error) {
	status, err := p.status()
	return status["VmRSS:"], status["VmHWM:"], err
}

// status is what the kernel says of the memory of the process, in octets.
func (p *Process) status() (map[string]float64, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return nil, fmt.Errorf("read the memory of a process: %w", err)
	}
	status := map[string]float64{}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[2] != "kB" {
			continue
		}
		value, err := strconv.ParseFloat(fields[1], 64)
		if err != nil {
			return nil, fmt.Errorf("read the memory of a process: %w", err)
		}
		status[fields[0]] = value * 1024
	}
	return status, nil
}

// LiveHeap collects the garbage of the process and returns what is left, in octets.
func (p *Process) LiveHeap(ctx context.Context) (float64, error) {
	var text string
	for range 3 { // finalizers and pools let go of some of it only at the second time
		request, err := http.NewRequestWithContext(ctx, http.MethodGet,
			"http://"+p.Debug+"/debug/pprof/heap?gc=1&debug=1", http.NoBody)
		if err != nil {
			return 0, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, fmt.Errorf("ask process %d for its heap: %w", p.PID(), err)
		}
		content, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK {
			return 0, fmt.Errorf("ask process %d for its heap: %s, %w", p.PID(), response.Status, err)
		}
		text = string(content)
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, "# HeapAlloc = "); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("the heap profile of process %d has no HeapAlloc", p.PID())
}

// End ends the process by force, since nothing of it is kept. It may be called on nil.
func (p *Process) End() error {
	if p == nil {
		return nil
	}
	return p.Kill()
}
