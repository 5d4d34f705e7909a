// SPDX-License-Identifier: Apache-2.0

//go:build race

package merge

// cases are fewer under the race detector, which makes them ten times as slow: a merge has no goroutines.
const cases = 300
