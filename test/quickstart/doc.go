// SPDX-License-Identifier: Apache-2.0

// Package quickstart does what docs/get-started/quickstart.md tells a new user to do: it reads the commands from that
// page, from docs/operate/install.md and from docs/get-started/join-by-hand.md and runs them with sh, as they are, on
// three real control planes with real RBAC. After each it looks whether what was promised is so, and at the end whether
// anything of ours remains.
//
// It runs in Linux namespaces of its own, as the tests in test/datapath do. What is stood in for:
//
//   - The kubelets, by the package kubelet in this folder, which says what it does not do. The controllers and CoreDNS are our programs,
//     as the Deployments in the clusters ask for them; before `coredns enable`, CoreDNS is the stock one. The pods of the
//     user's own services are played.
//   - Images: their names stand for programs that are built from this tree, so that the registry of the pages needs no
//     other name. Making them is tested in test/deploy, pushing them is not.
//   - kube-proxy: nothing is sent to ClusterIPs. DNS is asked at the pods of CoreDNS.
package quickstart
