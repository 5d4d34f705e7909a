// SPDX-License-Identifier: Apache-2.0

// Package skew runs a cluster set in which one member has the programs of the version before. Of three real control
// planes, east and north have the programs of the checkout, and west has those that the test builds from the history of
// the repository. Later north goes back to the version before and returns, and west is upgraded and goes back.
//
//	make test-skew                  the last tag or, without one, the last commit before version 2 of the snapshot
//	make test-skew OLD=<commit>     another one
//
// Each step waits for what docs/design says of it. Meanwhile two observers judge each state: no slice and no answer of
// a cluster has what policies forbid there, and the plain exports never lose a copy or an answer.
package skew
