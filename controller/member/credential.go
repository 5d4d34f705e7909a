// SPDX-License-Identifier: Apache-2.0

package member

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// DefaultNamespace is where a member's heartbeat is looked for when its kubeconfig context names no namespace.
const DefaultNamespace = "clusterset-dns"

// A Credential is what it takes to read one member cluster.
type Credential struct {
	// Config reaches the API server of the member.
	Config *rest.Config
	// Namespace is the one that the member's heartbeat Lease is in.
	Namespace string
}

// ParseKubeconfig makes a credential of the current context of a kubeconfig that came from a Secret. A Secret is data
// from outside: a kubeconfig that would run a program or read a file here is refused, with an error that names the
// field and the one to use instead.
func ParseKubeconfig(kubeconfig []byte) (Credential, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return Credential{}, notKubeconfig(err)
	}
	if config.CurrentContext == "" {
		return Credential{}, errors.New("the kubeconfig has no current-context: set it to the context to use")
	}
	if err := selfContained(config); err != nil {
		return Credential{}, err
	}
	return fromConfig(config, config.CurrentContext)
}

// LoadKubeconfig makes a credential of a kubeconfig file that the operator named. An empty context means the file's
// current one.
func LoadKubeconfig(path, context string) (Credential, error) {
	config, err := clientcmd.LoadFromFile(path)
	if file := (*os.PathError)(nil); err != nil && !errors.As(err, &file) {
		err = notKubeconfig(err)
	}
	if err != nil {
		return Credential{}, fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		return Credential{}, fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	if context == "" {
		context = config.CurrentContext
	}
	credential, err := fromConfig(config, context)
	if err != nil {
		return Credential{}, fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	return credential, nil
}

// lineOf is where an error of the YAML parser says the fault is.
var lineOf = regexp.MustCompile(`line \d+`)

// notKubeconfig says what a parser's error means. The error itself is left out: it quotes what it read, which may be a
// token.
func notKubeconfig(err error) error {
	at := lineOf.FindString(err.Error())
	switch {
	case at != "":
		at = " (" + at + ")"
	case strings.Contains(err.Error(), "illegal base64"):
		at = " (a field that ends in -data is no base64)"
	}
	return errors.New("this is no kubeconfig" + at +
		": use YAML or JSON with apiVersion: v1 and kind: Config, as kubectl reads it")
}

func fromConfig(config *clientcmdapi.Config, context string) (Credential, error) {
	used, ok := config.Contexts[context]
	if !ok {
		return Credential{}, fmt.Errorf("the kubeconfig has no context %q", context)
	}
	restConfig, err := clientcmd.NewNonInteractiveClientConfig(*config, context, &clientcmd.ConfigOverrides{},
		nil).ClientConfig()
	if err != nil {
		return Credential{}, fmt.Errorf("context %q of the kubeconfig: %w", context, err)
	}
	if err := confidential(restConfig); err != nil {
		return Credential{}, fmt.Errorf("context %q of the kubeconfig: %w", context, err)
	}
	// What cannot make a connection is known now rather than when it is tried.
	_, closeConnections, err := newHTTPClient(restConfig, patience)
	if err != nil {
		return Credential{}, fmt.Errorf("context %q of the kubeconfig: %w", context, err)
	}
	closeConnections()
	namespace := used.Namespace
	if namespace == "" {
		namespace = DefaultNamespace
	}
	return Credential{Config: restConfig, Namespace: namespace}, nil
}

// confidential refuses what would send the credential to whoever answers.
func confidential(config *rest.Config) error {
	if config.Insecure {
		return errors.New("insecure-skip-tls-verify is refused, as anybody could answer for the member: use certificate-authority-data")
	}
	if !strings.HasPrefix(strings.ToLower(config.Host), "https://") {
		return errors.New("the server is not reached by TLS, as anybody could answer for the member: use a server that begins with https://")
	}
	return nil
}

// selfContained refuses what makes the current context depend on this machine.
func selfContained(config *clientcmdapi.Config) error {
	var refused []string
	refuse := func(present bool, field, instead string) {
		if present {
			refused = append(refused, fmt.Sprintf("%s (%s)", field, instead))
		}
	}
	context := config.Contexts[config.CurrentContext]
	if context == nil {
		return nil // fromConfig reports it
	}
	if user := config.AuthInfos[context.AuthInfo]; user != nil {
		refuse(user.Exec != nil, "exec", "use token or client-certificate-data")
		refuse(user.AuthProvider != nil, "auth-provider", "use token or client-certificate-data")
		refuse(user.TokenFile != "", "tokenFile", "use token")
		refuse(user.ClientCertificate != "", "client-certificate", "use client-certificate-data")
		refuse(user.ClientKey != "", "client-key", "use client-key-data")
	}
	if cluster := config.Clusters[context.Cluster]; cluster != nil {
		refuse(cluster.CertificateAuthority != "", "certificate-authority", "use certificate-authority-data")
	}
	if len(refused) > 0 {
		return fmt.Errorf("a kubeconfig in a Secret may not run programs nor read files, so it may not have %s",
			strings.Join(refused, ", "))
	}
	return nil
}
