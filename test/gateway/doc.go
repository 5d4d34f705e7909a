// SPDX-License-Identifier: Apache-2.0

// Package gateway runs the conformance tests of its folder conformance: with imports that they write by hand, and with
// imports of our controller from two clusters.
//
// haproxy and our controllers are real. A small controller of this package programs haproxy: it stands for an
// implementation of Gateway API. API servers are the demo's models, whose pods have echo servers of this process at their
// addresses.
package gateway
