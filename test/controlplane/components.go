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

// programs returns the programs of the cluster, in the order of their start. Without nodes there is no scheduler.
func (c *Cluster) programs() []assets.Program {
	if len(c.options.Zones) > 0 {
		return assets.Cluster()
	}
	return assets.Cluster()[:3]
}

// Files in the cluster's directory, which is the working directory of all components. Relative names keep the path of
// etcd's socket short enough for a socket address.
const (
	servingFile    = "apiserver.crt" // its own authority
	servingKeyFile = "apiserver.key"
	signingKeyFile = "serviceaccount.key"
	adminFile      = "admin.kubeconfig"
	tokensFile     = "tokens.csv"
)

// controllers are the controllers of Services, pods and namespaces. The others are for volumes, clouds and real nodes.
var controllers = []string{
	"clusterrole-aggregation-controller", "daemonset-controller", "deployment-controller", "endpoints-controller",
	"endpointslice-controller", "endpointslice-mirroring-controller", "garbage-collector-controller", "namespace-controller",
	"replicaset-controller", "root-ca-certificate-publisher-controller", "service-cidr-controller", "serviceaccount-controller",
	"serviceaccount-token-controller", "statefulset-controller",
}

// newComponents defines how each component is run.
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
			// etcd requires a port even if the address is a socket name.
			"--unsafe-no-fsync",
			"--log-level=warn",
		},
		assets.APIServer: append([]string{
			"--etcd-servers=unix://etcd:0",
			"--bind-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", c.address.Port()),
			"--advertise-address=127.0.0.1",
			"--endpoint-reconciler-type=none", // endpoints must not be loopback addresses
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
			// No controller would remove the taint that this plugin adds to new nodes.
			"--disable-admission-plugins=TaintNodesByCondition",
		}, c.options.APIServerArgs...),
		assets.Controllers: append([]string{
			"--kubeconfig=" + adminFile,
			"--root-ca-file=" + servingFile,
			"--service-account-private-key-file=" + signingKeyFile,
			"--controllers=" + strings.Join(controllers, ","),
			"--use-service-account-credentials", // so that admission policies and RBAC apply as usual
		}, alone...),
		assets.Scheduler: append([]string{"--kubeconfig=" + adminFile}, alone...),
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

// environment returns an environment without the user's configuration of tools (ETCD_…, KUBECONFIG, proxies).
func (c *Cluster) environment() []string {
	return []string{
		"HOME=" + c.Directory(), "TMPDIR=" + os.TempDir(), "PATH=" + os.Getenv("PATH"),
		"GOGC=400", // saves a fifth of an API server's processor time for 100 MiB of memory
	}
}

// Joined returns ranges in the form of a flag.
func Joined(prefixes []netip.Prefix) string {
	texts := make([]string, len(prefixes))
	for i, prefix := range prefixes {
		texts[i] = prefix.String()
	}
	return strings.Join(texts, ",")
}
