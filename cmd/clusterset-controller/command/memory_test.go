// SPDX-License-Identifier: Apache-2.0

package command

import (
	"math"
	"runtime/debug"
	"testing"
)

// TestMemoryLimit: nine tenths of what the container may take, unless GOMEMLIMIT
// says otherwise.
func TestMemoryLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for name, test := range map[string]struct {
		environment map[string]string
		want        int64
		wrong       bool
	}{
		"the chart's": {map[string]string{memoryLimitVariable: "536870912"}, 536870912 / 10 * 9, false},
		"none":        {nil, math.MaxInt64, false},
		"GOMEMLIMIT": {
			map[string]string{memoryLimitVariable: "536870912", "GOMEMLIMIT": "1GiB"},
			math.MaxInt64,
			false,
		},
		"not a number":   {map[string]string{memoryLimitVariable: "512Mi"}, math.MaxInt64, true},
		"not a limit":    {map[string]string{memoryLimitVariable: "-1"}, math.MaxInt64, true},
		"nothing at all": {map[string]string{memoryLimitVariable: "0"}, math.MaxInt64, true},
	} {
		debug.SetMemoryLimit(math.MaxInt64)
		err := limitMemory(func(key string) string { return test.environment[key] })
		if got := debug.SetMemoryLimit(-1); got != test.want || (err != nil) != test.wrong {
			t.Errorf("%s: limit %d, error %v", name, got, err)
		}
	}
}
