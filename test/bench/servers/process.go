// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"bufio"
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
	debug string // where it serves net/http/pprof
}

// NewProcess looks at a process that does not serve profiles.
func NewProcess(p *process.Process) *Process { return &Process{Process: p} }

// CPU is the processor time that the process has used, all its threads together, those that ended too.
func (p *Process) CPU() (time.Duration, error) { return CPUOf(p.PID()) }

// CPUOf is the processor time that a process has used.
func CPUOf(pid int) (time.Duration, error) {
	var used unix.Timespec
	// The clock of another process: MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED) of the kernel.
	clock := int32(^pid<<3 | 2)
	if err := unix.ClockGettime(clock, &used); err != nil {
		return 0, fmt.Errorf("read the processor time of process %d: %w", pid, err)
	}
	return time.Duration(used.Nano()), nil
}

// OwnCPU is the processor time that this process has used.
func OwnCPU() (time.Duration, error) {
	var used unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &used); err != nil {
		return 0, fmt.Errorf("read the processor time: %w", err)
	}
	return time.Duration(used.Nano()), nil
}

// Memory is what the process holds in memory now, and the most that it held, in octets.
func (p *Process) Memory() (resident, peak float64, err error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return 0, 0, fmt.Errorf("read the memory of a process: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[2] != "kB" {
			continue
		}
		value, err := strconv.ParseFloat(fields[1], 64)
		if err != nil {
			return 0, 0, fmt.Errorf("read the memory of a process: %w", err)
		}
		switch fields[0] {
		case "VmRSS:":
			resident = value * 1024
		case "VmHWM:":
			peak = value * 1024
		}
	}
	return resident, peak, nil
}

// LiveHeap collects the garbage of the process twice and returns what is left, in octets.
func (p *Process) LiveHeap(ctx context.Context) (float64, error) {
	// Finalizers and pools let go of some of it only at the second time.
	for range 2 {
		if err := p.get(ctx, "/debug/pprof/heap?gc=1", io.Discard); err != nil {
			return 0, err
		}
	}
	var text strings.Builder
	if err := p.get(ctx, "/debug/pprof/heap?gc=1&debug=1", &text); err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(strings.NewReader(text.String()))
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "# HeapAlloc = "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("the heap profile of process %d has no HeapAlloc", p.PID())
}

// Profile writes a profile (net/http/pprof) to a file: "heap", or "profile?seconds=5".
func (p *Process) Profile(ctx context.Context, what, path string) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write a profile: %w", err)
	}
	defer file.Close()
	return p.get(ctx, "/debug/pprof/"+what, file)
}

func (p *Process) get(ctx context.Context, path string, into io.Writer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.debug+path, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask process %d for a profile: %w", p.PID(), err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("ask process %d for %s: %s", p.PID(), path, response.Status)
	}
	if _, err := io.Copy(into, response.Body); err != nil {
		return fmt.Errorf("ask process %d for %s: %w", p.PID(), path, err)
	}
	return nil
}

// End ends the process by force, since nothing of it is kept. It may be called on nil.
func (p *Process) End() error {
	if p == nil {
		return nil
	}
	return p.Kill()
}
