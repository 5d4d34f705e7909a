// SPDX-License-Identifier: Apache-2.0

//go:build !race

package merge

const cases = 10000
