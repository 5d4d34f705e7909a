// SPDX-License-Identifier: Apache-2.0

// Package gateway runs the conformance tests in its folder conformance: with imports that the tests write, and with
// imports by our controller from two clusters.
//
// haproxy and our controllers are real. A small controller in this package, which programs haproxy, replaces an
// implementation of Gateway API. The API servers are the demo's models. This process runs echo servers at the addresses
// of their pods.
package gateway
