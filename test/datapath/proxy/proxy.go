// SPDX-License-Identifier: Apache-2.0

// Package proxy runs real kube-proxies in network namespaces.
package proxy

import (
	"path/filepath"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/assets"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/network"
)

// Rights has the service account of kube-proxies in kube-system, and its RBAC objects.
const Rights = `{apiVersion: v1, kind: ServiceAccount, metadata: {name: kube-proxy, namespace: kube-system}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: kube-proxy}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:node-proxier"}
subjects: [{kind: ServiceAccount, name: kube-proxy, namespace: kube-system}]
`

// Start starts the kube-proxy of a node in its namespace, with the path of a kubeconfig. It runs until the
// test ends.
func Start(t testing.TB, cluster *controlplane.Cluster, node string, at *network.Namespace, credential, mode string) {
	paths, err := assets.Ensure()
	controlplanetest.Must(t, err)
	controlplanetest.Run(t, at.In("", process.Spec{
		Name: "kube-proxy of " + node,
		Path: paths[assets.KubeProxy],
		Args: []string{
			"--kubeconfig=" + credential,
			"--hostname-override=" + node,
			"--proxy-mode=" + mode,
			"--cluster-cidr=" + controlplane.Joined(cluster.Options().PodCIDRs),
			// These limits belong to the machine.
			"--conntrack-max-per-core=0",
			"--oom-score-adj=0",
		},
		LogFile: filepath.Join(cluster.Directory(), "kube-proxy-"+node+".log"),
	}))
}
