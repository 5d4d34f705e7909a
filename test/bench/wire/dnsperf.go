// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// Load is what dnsperf is to do.
type Load struct {
	// Address is that of the server, Queries the file of queries.
	Address, Queries string
	// Duration is how long, in whole seconds.
	Duration time.Duration
	// Core is the only one that dnsperf runs on.
	Core int
}

var completedPattern = regexp.MustCompile(`(?m)^\s*Queries completed:\s+(\d+)`)

// Run puts the load on the server, waits for its end and returns how many queries were answered.
func (l Load) Run(ctx context.Context) (completed int, err error) {
	host, port, ok := strings.Cut(l.Address, ":")
	if !ok {
		return 0, fmt.Errorf("address %q has no port", l.Address)
	}
	args := []string{
		"-c", strconv.Itoa(l.Core), "dnsperf", "-s", host, "-p", port, "-d", l.Queries, "-l", strconv.Itoa(int(l.Duration.Seconds())),
		"-c", "8", "-T", "1", "-q", "200", "-e", "-W",
	}
	cmd := exec.CommandContext(ctx, "taskset", args...) // of util-linux
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := process.StartTied(cmd); err != nil {
		return 0, fmt.Errorf("start dnsperf: %w", err)
	}
	if err := cmd.Wait(); err != nil {
		return 0, fmt.Errorf("run dnsperf: %w\n%s", err, output.String())
	}
	match := completedPattern.FindStringSubmatch(output.String())
	if match == nil {
		return 0, fmt.Errorf("dnsperf printed no statistics:\n%s", output.String())
	}
	return strconv.Atoi(match[1])
}
