// SPDX-License-Identifier: Apache-2.0

// Package release installs what `make release` builds, as a stranger does who has nothing else: from the files of two
// releases, in an empty working directory, without the checkout. Three fresh clusters get the first release: east and west
// by Helm, north by the manifest, with its id as a ClusterProperty. They are joined, share services, get the second release
// one after the other while pods keep asking for names, and lose all of it again. Then each is as it was before: every
// object that its API server lists, but for Events, and for status and versions that Kubernetes itself counts.
//
// The releases are built from the same source as versions 0.1.0 and 0.2.0, for the platform of this machine, because none
// is published yet: they differ in nothing but the version. RELEASES="<directory> <directory>" takes two others, such as
// downloads of the last release and the output of `make release`.
//
// It runs in Linux namespaces of its own; the package test/quickstart/live starts the clusters and says what is stood in
// for. The pods run what is in the images of the release. No registry is involved: the nodes have the images, under the
// names that their layouts give.
package release
