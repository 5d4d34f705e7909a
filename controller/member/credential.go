// SPDX-License-Identifier: Apache-2.0

package member

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"

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

// ParseKubeconfig makes a credential from the current context of a kubeconfig in a Secret. Secrets are not trusted: a
// kubeconfig that would run a program or read a file here is refused, with an error that names the field to use
// instead.
func ParseKubeconfig(kubeconfig []byte) (Credential, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return Credential{}, errNotKubeconfig
	}
	if err := selfContained(config); err != nil {
		return Credential{}, err
	}
	credential, err := fromConfig(config)
	credential.kubeconfig = kubeconfig
	return credential, err
}

// errNotKubeconfig replaces a parser's error, which may quote a token.
var errNotKubeconfig = errors.New("this is no kubeconfig: use YAML or JSON with apiVersion: v1 and kind: Config, as kubectl reads it")

// fromConfig makes a credential from the current context.
func fromConfig(config *clientcmdapi.Config) (Credential, error) {
	context := config.CurrentContext
	if context == "" {
		return Credential{}, errors.New("the kubeconfig has no current-context: set it to the context to use")
	}
	used, ok := config.Contexts[context]
	if !ok {
		return Credential{}, fmt.Errorf("the kubeconfig has no context %q", context)
	}
	credential := Credential{Namespace: cmp.Or(used.Namespace, DefaultNamespace)}
	err := checkProxy(config.Clusters[used.Cluster])
	var restConfig *rest.Config
	if err == nil {
		restConfig, err = clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
	}
	if err == nil {
		err = confidential(restConfig)
	}
	if err == nil {
		_, err = newHTTPClient(restConfig) // reports an invalid credential now rather than at the first request
	}
	if err != nil {
		return credential, fmt.Errorf("context %q of the kubeconfig: %w", context, err)
	}
	credential.Config = restConfig
	return credential, nil
}

// confidential refuses connections that do not authenticate the server, which would disclose the credential.
func confidential(config *rest.Config) error {
	if config.Insecure {
		return errors.New("insecure-skip-tls-verify is refused, because any server could answer for the member: use certificate-authority-data")
	}
	if server, err := url.Parse(config.Host); err != nil || server.Scheme != "https" || server.Host == "" {
		return errors.New("the server is no URL with TLS, without which any server could answer for the member: use a server that " +
			"begins with https://")
	}
	return nil
}

// selfContained refuses a current context that depends on programs or files of this machine.
func selfContained(config *clientcmdapi.Config) error {
	context := config.Contexts[config.CurrentContext]
	if context == nil {
		return nil // fromConfig reports it
	}
	user, cluster := config.AuthInfos[context.AuthInfo], config.Clusters[context.Cluster]
	if user != nil && (user.Exec != nil || user.AuthProvider != nil || user.TokenFile != "" || user.ClientCertificate != "" || user.ClientKey != "") ||
		cluster != nil && cluster.CertificateAuthority != "" {
		return errors.New("a kubeconfig in a Secret may not run programs nor read files, by exec, auth-provider, tokenFile and the " +
			"like: use token, client-certificate-data, client-key-data and certificate-authority-data")
	}
	return nil
}
