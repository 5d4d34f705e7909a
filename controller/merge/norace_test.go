// SPDX-License-Identifier: Apache-2.0

//go:build !race

package merge

// cases are random clustersets; make fuzz looks at more.
const cases = 2500
