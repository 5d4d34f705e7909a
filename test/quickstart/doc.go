// SPDX-License-Identifier: Apache-2.0

// Package quickstart does what docs/get-started/quickstart.md tells a new user to do, with what `make release` builds: it
// reads the commands from that page and from docs/operate/install.md and runs them with sh on three real control planes
// with real RBAC. After each it looks whether what was promised is so, and at the end whether anything of ours remains. Before
// clusters leave, it breaks the set as testdata/faults.txt says, and does what `kubectl clusterset check` says.
//
// The user has the files of two releases and an empty working directory. The checkout is hidden from all commands but those
// of joining by hand, which name files of it. In between, the clusters get the second release one after the other, while
// pods keep asking for names.
//
// The releases are built from the same source as versions 0.1.0 and 0.2.0, for the platform of this machine, because none
// is published yet: they differ in nothing but the version. RELEASES="<directory> <directory>" takes two others, such as
// downloads of the last release and the output of `make release`.
//
// It works in a sandbox, as the tests in test/datapath do. What is stood in for:
//
//   - The kubelets, by the package kubelet, which says what it does not do. The pods of the user's own services are played.
//   - Images: their names stand for programs, those in the images of the release. No registry is involved: the nodes have the
//     images, under the names that their layouts give, and under those of the registry of the pages. Before `coredns enable`,
//     CoreDNS is the stock one. Making images is tested in deploy/release.
//   - The nodes of a cluster, which are one network namespace with a kube-proxy.
package quickstart
