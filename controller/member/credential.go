// SPDX-License-Identifier: Apache-2.0

package member

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// DefaultNamespace is the namespace of a member's heartbeat if its kubeconfig context names none.
const DefaultNamespace = "clusterset-dns"

// A Credential gives access to one member cluster.
type Credential struct {
	// Config reaches the API server of the member.
	Config *rest.Config
	// Namespace is the namespace of the member's heartbeat Lease.
	Namespace string
	// kubeconfig is the content from which the credential was made.
	kubeconfig []byte
}

// ParseKubeconfig makes a credential from the current context of a kubeconfig in a Secret. Secrets are not trusted: see
// checkContext.
func ParseKubeconfig(kubeconfig []byte) (credential Credential, err error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return Credential{}, errNotKubeconfig
	}
	used := config.Contexts[config.CurrentContext]
	if used == nil {
		return Credential{}, fmt.Errorf("the kubeconfig has no context %q: set current-context to the context to use", config.CurrentContext)
	}
	credential = Credential{Namespace: cmp.Or(used.Namespace, DefaultNamespace), kubeconfig: kubeconfig}
	var client *rest.Config
	if err = checkContext(config.AuthInfos[used.AuthInfo], config.Clusters[used.Cluster]); err == nil {
		client, err = clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
	}
	if err == nil {
		_, err = newHTTPClient(client) // reports an invalid credential now rather than at the first request
	}
	if err != nil {
		return credential, fmt.Errorf("context %q of the kubeconfig: %w", config.CurrentContext, err)
	}
	credential.Config = client
	return credential, nil
}

// errNotKubeconfig replaces a parser's error, which may quote a token.
var errNotKubeconfig = errors.New("this is no kubeconfig: use YAML or JSON with apiVersion: v1 and kind: Config, as kubectl reads it")

// checkContext refuses a context that depends on programs or files of this machine, and one that would disclose the credential
// because it does not authenticate the server. Its errors quote neither URL, which may have a password. A missing user or
// cluster is nil.
func checkContext(user *clientcmdapi.AuthInfo, cluster *clientcmdapi.Cluster) error {
	user, cluster = cmp.Or(user, &clientcmdapi.AuthInfo{}), cmp.Or(cluster, &clientcmdapi.Cluster{})
	server, err := url.Parse(cluster.Server)
	through, err2 := url.Parse(cluster.ProxyURL)
	switch {
	case user.Exec != nil || user.AuthProvider != nil || user.TokenFile != "" || user.ClientCertificate != "" || user.ClientKey != "" ||
		cluster.CertificateAuthority != "":
		return errors.New("a kubeconfig in a Secret may not run programs nor read files, by exec, auth-provider, tokenFile and the " +
			"like: use token, client-certificate-data, client-key-data and certificate-authority-data")
	case cluster.InsecureSkipTLSVerify:
		return errors.New("insecure-skip-tls-verify is refused, because any server could answer for the member: use certificate-authority-data")
	case err != nil || server.Scheme != "https" || server.Host == "":
		return errors.New("the server is no URL with TLS, without which any server could answer for the member: use a server that " +
			"begins with https://")
	case cluster.ProxyURL != "" && (err2 != nil || through.Host == "" || !slices.Contains([]string{"http", "https", "socks5"}, through.Scheme)):
		return errors.New("the proxy-url is no URL of a proxy: use http://, https:// or socks5:// with a host and a port")
	}
	return nil
}
