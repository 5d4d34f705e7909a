// SPDX-License-Identifier: Apache-2.0

// Package quickstart follows docs/get-started/quickstart.md as a new user, with the output of `make release`: it runs
// the commands of that page and of docs/operate/install.md with sh on three real control planes with RBAC. After each
// command it checks the promised result, and at the end that nothing of clusterset-dns is left. Before clusters leave,
// it breaks the set as in testdata/faults.txt, and follows the hints of `kubectl clusterset check`.
//
// The user has the files of two releases and an empty working directory; the commands for joining by hand run in the
// checkout. In between, the clusters are upgraded to the second release one by one, while nodes keep querying names.
//
// Both releases are built from the same source, as versions 0.1.0 and 0.2.0 for the platform of this machine, because
// no release is published yet: only their versions differ. RELEASES="<directory> <directory>" selects other releases,
// such as a download of the last release and the output of `make release`.
//
// Like the tests in test/datapath, it runs in a sandbox. It simulates:
//
//   - The kubelets, with package kubelet, which documents the differences. Pods of the user's own services run nothing.
//   - Images: their names stand for the programs in the release's archives. No registry is involved: the nodes have the images,
//     under their own names and under those of the registry of the pages. Before `coredns enable`, CoreDNS is the
//     stock one. deploy/release tests how images are made.
//   - The nodes of a cluster: a single network namespace with a kube-proxy.
package quickstart
