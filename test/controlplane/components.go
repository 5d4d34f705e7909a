// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/assets"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// programs are those that the cluster starts with, in this order. Without nodes there is nothing to schedule.
func (c *Cluster) programs() []assets.Program {
	if len(c.options.Zones) > 0 {
		return assets.Cluster()
	}
	return assets.Cluster()[:3]
}

// Files in the cluster's directory, which is the working directory of all components. Relative names keep the
// path of etcd's socket short enough for a socket address.
const (
	servingFile    = "apiserver.crt" // its own authority
	servingKeyFile = "apiserver.key"
	signingKeyFile = "serviceaccount.key"
	systemFile     = "system.kubeconfig"    // of the controllers
	schedulerFile  = "scheduler.kubeconfig" // of kube-scheduler
	adminFile      = "admin.kubeconfig"
	tokensFile     = "tokens.csv"
)

// controllers are those that make Services, pods and namespaces live. The others are for volumes, clouds and real nodes.
var controllers = []string{
	"clusterrole-aggregation-controller", "daemonset-controller", "deployment-controller", "endpoints-controller",
	"endpointslice-controller", "endpointslice-mirroring-controller", "garbage-collector-controller", "namespace-controller",
	"replicaset-controller", "root-ca-certificate-publisher-controller", "service-cidr-controller", "serviceaccount-controller",
	"serviceaccount-token-controller", "statefulset-controller",
}

// newComponents says how each component is run.
func (c *Cluster) newComponents() map[assets.Program]*Component {
	alone := []string{"--leader-elect=false", "--secure-port=0", "--kube-api-qps=1000", "--kube-api-burst=2000"}
	args := map[assets.Program][]string{
		assets.Etcd: {
			"--name=" + c.options.Name,
			"--data-dir=etcd",
			// A socket in the cluster's directory needs no free port, and only its user can open it.
			"--listen-client-urls=unix://etcd:0",
			"--advertise-client-urls=unix://etcd:0",
			"--listen-peer-urls=unix://peer:0",
			"--initial-advertise-peer-urls=unix://peer:0",
			"--initial-cluster=" + c.options.Name + "=unix://peer:0",
			// etcd wants a port in an address also where it is the name of a socket.
			"--unsafe-no-fsync",
			"--log-level=warn",
		},
		assets.APIServer: append([]string{
			"--etcd-servers=unix://etcd:0",
			"--bind-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", c.address.Port()),
			"--advertise-address=127.0.0.1",
			"--endpoint-reconciler-type=none", // a loopback address is no valid endpoint
			"--cert-dir=.",
			"--tls-cert-file=" + servingFile,
			"--tls-private-key-file=" + servingKeyFile,
			"--token-auth-file=" + tokensFile,
			"--authorization-mode=Node,RBAC",
			"--service-account-issuer=https://" + c.options.Name + ".example.org",
			"--service-account-jwks-uri=https://" + c.address.String() + "/openid/v1/jwks",
			"--service-account-key-file=" + signingKeyFile,
			"--service-account-signing-key-file=" + signingKeyFile,
			"--service-cluster-ip-range=" + Joined(c.options.ServiceCIDRs),
			"--allow-privileged",
			// Nodes are played, so nothing would take the taint away that this plugin gives to new ones.
			"--disable-admission-plugins=TaintNodesByCondition",
		}, c.options.APIServerArgs...),
		assets.Controllers: append([]string{
			"--kubeconfig=" + systemFile,
			"--root-ca-file=" + servingFile,
			"--service-account-private-key-file=" + signingKeyFile,
			"--controllers=" + strings.Join(controllers, ","),
			"--use-service-account-credentials", // admission policies and RBAC see them as they do anywhere
		}, alone...),
		assets.Scheduler: append([]string{"--kubeconfig=" + schedulerFile}, alone...),
	}
	all := make(map[assets.Program]*Component, len(args))
	for program, args := range args {
		all[program] = &Component{cluster: c, spec: process.Spec{
			Name:    c.options.Name + "'s " + string(program),
			Args:    args,
			Env:     c.environment(),
			Dir:     c.Directory(),
			LogFile: c.path(string(program) + ".log"),
		}}
	}
	return all
}

// environment keeps what configures the user's tools (ETCD_…, KUBECONFIG, proxies) away from the components.
func (c *Cluster) environment() []string {
	return []string{
		"HOME=" + c.Directory(), "TMPDIR=" + os.TempDir(), "PATH=" + os.Getenv("PATH"),
		"GOGC=400", // a fifth less processor time of an API server, for 100 MiB of memory
	}
}

// Joined are ranges as a flag has them.
func Joined(prefixes []netip.Prefix) string {
	texts := make([]string, len(prefixes))
	for i, prefix := range prefixes {
		texts[i] = prefix.String()
	}
	return strings.Join(texts, ",")
}
