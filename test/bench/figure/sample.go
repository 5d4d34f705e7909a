// SPDX-License-Identifier: Apache-2.0

package figure

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Quantile is the value that the part q of the samples does not exceed (nearest rank), 0 of no samples. It does not
// change the samples.
func Quantile[T float64 | time.Duration](samples []T, q float64) T {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	rank := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

// Median is the middle of the samples, the mean of the middle two of an even number.
func Median(samples []float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Ratio is the median of a to b, round by round: what disturbs a round disturbs both sides of it. Both have as many
// samples, and those of b are positive.
func Ratio(a, b []float64) float64 {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	return Median(ratios)
}

// Time shows nanoseconds with three digits, in the unit that fits.
func Time(nanoseconds float64) string { return scaled(nanoseconds, 1000, "ns", "µs", "ms", "s") }

// Bytes shows a number of octets with three digits, in the binary unit that fits.
func Bytes(octets float64) string { return scaled(octets, 1024, "B", "KiB", "MiB", "GiB") }

func scaled(value, step float64, units ...string) string {
	for len(units) > 1 && math.Abs(value) >= step {
		value, units = value/step, units[1:]
	}
	return Number(value) + " " + units[0]
}

// Number shows three digits, more where the whole part has more.
func Number(value float64) string {
	switch magnitude := math.Abs(value); {
	case value == math.Trunc(value) && magnitude < 1e6:
		return fmt.Sprintf("%.0f", value)
	case magnitude < 10:
		return fmt.Sprintf("%.2f", value)
	case magnitude < 100:
		return fmt.Sprintf("%.1f", value)
	default:
		return fmt.Sprintf("%.0f", value)
	}
}
