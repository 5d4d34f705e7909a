// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"runtime/debug"
	"strconv"
)

// memoryLimitVariable is the environment variable that has the memory limit of
// the container, in bytes. The chart sets it by the downward API.
const memoryLimitVariable = "CONTAINER_MEMORY_LIMIT"

// limitMemory makes nine tenths of the container's memory limit the soft limit
// of the Go runtime: the collector works harder before the kernel ends the
// process. GOMEMLIMIT, which the runtime reads itself, wins.
func limitMemory(getenv func(string) string) error {
	text := getenv(memoryLimitVariable)
	if text == "" || getenv("GOMEMLIMIT") != "" {
		return nil
	}
	limit, err := strconv.ParseInt(text, 10, 64)
	if err != nil || limit <= 0 {
		return fmt.Errorf("environment variable %s is %q: set it to the container's memory limit in bytes, or unset it",
			memoryLimitVariable, text)
	}
	debug.SetMemoryLimit(limit / 10 * 9)
	return nil
}
