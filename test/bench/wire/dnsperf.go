// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/bench/servers"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// ErrNoDnsperf says what to install.
var ErrNoDnsperf = errors.New(
	"dnsperf is missing: install the package dnsperf (Debian and Ubuntu: apt-get install dnsperf)")

// HaveDnsperf returns ErrNoDnsperf where there is none.
func HaveDnsperf() error {
	if _, err := exec.LookPath("dnsperf"); err != nil {
		return ErrNoDnsperf
	}
	return nil
}

// Load is what dnsperf is to do.
type Load struct {
	// Address is that of the server, Queries the file of queries.
	Address, Queries string
	// Duration is how long, in whole seconds.
	Duration time.Duration
	// PerSecond limits the rate; 0 means as fast as it goes.
	PerSecond int
	// Core is the only one that dnsperf runs on, or servers.AnyCore.
	Core int
	// Latencies asks for each query's.
	Latencies bool
}

// LoadResult is what came of a load.
type LoadResult struct {
	// Completed and Lost are numbers of queries.
	Completed, Lost int
	PerSecond       float64
	Latencies       []time.Duration
}

var (
	completedPattern = regexp.MustCompile(`(?m)^\s*Queries completed:\s+(\d+)`)
	lostPattern      = regexp.MustCompile(`(?m)^\s*Queries lost:\s+(\d+)`)
	ratePattern      = regexp.MustCompile(`(?m)^\s*Queries per second:\s+([0-9.]+)`)
	// A line of -v: "> NOERROR name type 0.000123".
	latencyPattern = regexp.MustCompile(`(?m)^> [A-Z]\S* \S+ \S+ ([0-9.]+)`)
)

// Run puts the load on the server and waits for its end.
func (l Load) Run(ctx context.Context) (LoadResult, error) {
	host, port, ok := strings.Cut(l.Address, ":")
	if !ok {
		return LoadResult{}, fmt.Errorf("address %q has no port", l.Address)
	}
	if err := HaveDnsperf(); err != nil {
		return LoadResult{}, err
	}
	args := []string{
		"-s", host, "-p", port, "-d", l.Queries, "-l", strconv.Itoa(int(l.Duration.Seconds())),
		"-c", "8", "-T", "1", "-q", "200", "-e", "-W",
	}
	if l.PerSecond > 0 {
		args = append(args, "-Q", strconv.Itoa(l.PerSecond))
	}
	if l.Latencies {
		args = append(args, "-v")
	}
	path, args, err := servers.Command(l.Core, "dnsperf", args...)
	if err != nil {
		return LoadResult{}, err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := process.StartTied(cmd); err != nil {
		return LoadResult{}, fmt.Errorf("start dnsperf: %w", err)
	}
	if err := cmd.Wait(); err != nil {
		return LoadResult{}, fmt.Errorf("run dnsperf: %w\n%s", err, output.String())
	}
	return parse(output.String())
}

// parse reads what dnsperf printed.
func parse(output string) (LoadResult, error) {
	var result LoadResult
	completed, lost, rate := completedPattern.FindStringSubmatch(output), lostPattern.FindStringSubmatch(output),
		ratePattern.FindStringSubmatch(output)
	if completed == nil || lost == nil || rate == nil {
		return result, fmt.Errorf("dnsperf printed no statistics:\n%s", output)
	}
	var errs [3]error
	result.Completed, errs[0] = strconv.Atoi(completed[1])
	result.Lost, errs[1] = strconv.Atoi(lost[1])
	result.PerSecond, errs[2] = strconv.ParseFloat(rate[1], 64)
	for _, line := range latencyPattern.FindAllStringSubmatch(output, -1) {
		seconds, err := strconv.ParseFloat(line[1], 64)
		if err != nil {
			return result, fmt.Errorf("dnsperf printed the latency %q: %w", line[1], err)
		}
		result.Latencies = append(result.Latencies, time.Duration(seconds*float64(time.Second)))
	}
	return result, errors.Join(errs[:]...)
}
