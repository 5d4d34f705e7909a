// SPDX-License-Identifier: Apache-2.0

// Package access turns what an inventory says of a cluster into a candidate member.
package access

import (
	"cmp"
	"errors"
	"maps"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// An Access is how to reach the API server of a cluster, as an inventory has it. It is not trusted: Candidate refuses a
// proxy, and member.ParseKubeconfig refuses servers that are not authenticated, and programs.
type Access struct {
	Server, ServerName, ProxyURL string
	// CA is PEM; without it the certificate must be of a public CA.
	CA       []byte
	Insecure bool
	// Token or Certificate with Key, in PEM, or Exec are the credential.
	Token            string
	Certificate, Key []byte
	Exec             *clientcmdapi.ExecConfig
	// Namespace is that of the heartbeat in the cluster.
	Namespace string
}

// Kubeconfig returns a kubeconfig with the Access, without its proxy. Equal Accesses have equal kubeconfigs.
func (a Access) Kubeconfig() ([]byte, error) {
	const name = "member"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server: a.Server, TLSServerName: a.ServerName, CertificateAuthorityData: a.CA, InsecureSkipTLSVerify: a.Insecure,
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{
		Token: a.Token, ClientCertificateData: a.Certificate, ClientKeyData: a.Key, Exec: a.Exec,
	}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: a.Namespace}
	config.CurrentContext = name
	return clientcmd.Write(*config)
}

// prefix begins the annotations of an object that are believed.
var prefix = strings.TrimSuffix(member.ClusterLabel, "cluster")

// errProxy does not quote the URL, which may have a password.
var errProxy = errors.New("a proxy in an inventory is refused: remove it, or join the cluster with a kubeconfig in a " +
	"Secret of the controller's namespace or in a directory")

// ID returns the id of the cluster that an object is: the label member.ClusterLabel, else the annotation of that name, else
// otherwise.
func ID(object member.Object, otherwise string) string {
	return cmp.Or(object.GetLabels()[member.ClusterLabel], object.GetAnnotations()[member.ClusterLabel], otherwise)
}

// Candidate returns the candidate that an object is, with its ID. The kubeconfig is that of the Access, unless err is not
// nil or the Access has a proxy.
func Candidate(object member.Object, kind, otherwise string, is Access, err error) *member.Candidate {
	c := &member.Candidate{
		Cluster: ID(object, otherwise), Kind: kind, Name: member.NameOf(object), Object: object,
		Created:     object.GetCreationTimestamp().Time,
		Annotations: maps.Clone(object.GetAnnotations()),
	}
	maps.DeleteFunc(c.Annotations, func(key, _ string) bool { return !strings.HasPrefix(key, prefix) })
	if err == nil && is.ProxyURL != "" {
		err = errProxy
	}
	if c.Err = err; err == nil {
		c.Kubeconfig, c.Err = is.Kubeconfig()
	}
	return c
}
