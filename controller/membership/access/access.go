// SPDX-License-Identifier: Apache-2.0

// Package access turns what an inventory says of a cluster into a candidate member.
package access

import (
	"maps"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// An Access is how to reach the API server of a cluster, as an inventory has it. It is not trusted: member.ParseKubeconfig
// refuses servers that are not authenticated, and programs.
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

// Kubeconfig returns a kubeconfig with the Access. Equal Accesses have equal kubeconfigs.
func (a Access) Kubeconfig() ([]byte, error) {
	const name = "member"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server: a.Server, TLSServerName: a.ServerName, ProxyURL: a.ProxyURL, CertificateAuthorityData: a.CA,
		InsecureSkipTLSVerify: a.Insecure,
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

// Candidate returns the candidate that an object is. Its id is the label member.ClusterLabel, else the annotation of that
// name, else otherwise. The kubeconfig is that of the Access, unless err is not nil.
func Candidate(object member.Object, kind, otherwise string, is Access, err error) *member.Candidate {
	c := &member.Candidate{
		Cluster: otherwise, Kind: kind, Name: member.NameOf(object), Object: object,
		Created:     object.GetCreationTimestamp().Time,
		Annotations: maps.Clone(object.GetAnnotations()),
	}
	maps.DeleteFunc(c.Annotations, func(key, _ string) bool { return !strings.HasPrefix(key, prefix) })
	if id := object.GetAnnotations()[member.ClusterLabel]; id != "" {
		c.Cluster = id
	}
	if id := object.GetLabels()[member.ClusterLabel]; id != "" {
		c.Cluster = id
	}
	if c.Err = err; err == nil {
		c.Kubeconfig, c.Err = is.Kubeconfig()
	}
	return c
}
