// SPDX-License-Identifier: Apache-2.0

// Package quickstart does what docs/get-started/quickstart.md tells a new user to do: it reads the commands from that
// page and from docs/operate/install.md and runs them with sh, as they are, on
// three real control planes with real RBAC. After each it looks whether what was promised is so, and at the end whether
// anything of ours remains.
//
// The package live starts the control planes and says what is stood in for. The images are the programs of this tree, so that
// the registry of the pages needs no other name. Before `coredns enable`, CoreDNS is the stock one. Making images is tested in
// test/images, and installing a release in test/release.
package quickstart
