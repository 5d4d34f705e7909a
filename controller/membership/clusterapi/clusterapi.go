// SPDX-License-Identifier: Apache-2.0

// Package clusterapi proposes the clusters of Cluster API as members: the Secrets <cluster>-kubeconfig of type
// cluster.x-k8s.io/secret. They have the credential of an administrator.
package clusterapi

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/membership/access"
)

const (
	label      = "cluster.x-k8s.io/cluster-name"
	secretType = "cluster.x-k8s.io/secret"
	suffix     = "-kubeconfig"
	key        = "value"
)

// A Source lists the Secrets of a namespace that Selector selects.
type Source struct {
	Name, Namespace, Selector string
	Client                    kubernetes.Interface
	// Heartbeats is the namespace of the heartbeat in the clusters, and of the Secrets with their tokens here.
	Heartbeats string
}

// String implements member.Source.
func (s *Source) String() string { return s.Name }

// List implements member.Source.
func (s *Source) List(ctx context.Context) ([]*member.Candidate, error) {
	list, err := s.Client.CoreV1().Secrets(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: label + "," + s.Selector})
	if err != nil {
		return nil, err
	}
	var candidates []*member.Candidate
	for i := range list.Items {
		secret := &list.Items[i]
		if cluster := secret.Labels[label]; secret.Type != secretType || secret.Name != cluster+suffix {
			continue // another Secret of the cluster, such as a key
		}
		token, err := access.Secret(ctx, s.Client, s.Heartbeats, secret.Labels[label])
		if err != nil {
			return nil, err
		}
		candidates = append(candidates, Candidate(secret, token, s.Heartbeats))
	}
	return candidates, nil
}

// Candidate returns the candidate that a Secret is. If token is not nil, its token is used instead of the credential in the
// Secret, or no credential if access.Token does not permit it. heartbeats is the namespace of the heartbeat in the cluster.
func Candidate(secret, token *corev1.Secret, heartbeats string) *member.Candidate {
	is, err := accessOf(secret.Data[key])
	is.Namespace = heartbeats
	if err == nil && token != nil {
		is.Certificate, is.Key, is.Exec = nil, nil, nil
		is.Token, err = access.Token(token, access.ID(secret, secret.Labels[label]), is.Server)
	}
	return access.Candidate(secret, "Secret", secret.Labels[label], is, err)
}

var errNotKubeconfig = errors.New("the data under the key \"" + key + "\" is not a kubeconfig with a current-context: " +
	"is it a Secret of Cluster API?")

func accessOf(kubeconfig []byte) (access.Access, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return access.Access{}, errNotKubeconfig // the error may quote a token
	}
	context := config.Contexts[config.CurrentContext]
	if context == nil || config.Clusters[context.Cluster] == nil || config.AuthInfos[context.AuthInfo] == nil {
		return access.Access{}, errNotKubeconfig
	}
	cluster, user := config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo]
	return access.Access{
		Server: cluster.Server, ServerName: cluster.TLSServerName, ProxyURL: cluster.ProxyURL,
		CA: cluster.CertificateAuthorityData, Insecure: cluster.InsecureSkipTLSVerify, Token: user.Token,
		Certificate: user.ClientCertificateData, Key: user.ClientKeyData, Exec: user.Exec,
	}, nil
}
