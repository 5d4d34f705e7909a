// SPDX-License-Identifier: Apache-2.0

// Package argocd proposes the clusters of Argo CD as members: Secrets with the label
// argocd.argoproj.io/secret-type=cluster (Argo CD, Declarative Setup, Clusters).
package argocd

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/membership/access"
)

// label is that of the Secrets of clusters.
const label = "argocd.argoproj.io/secret-type=cluster"

// A Source lists the Secrets of a namespace that Selector selects.
type Source struct {
	Name, Namespace, Selector string
	Client                    kubernetes.Interface
	// Heartbeats is the namespace of the heartbeat in the clusters.
	Heartbeats string
}

// String implements member.Source.
func (s *Source) String() string { return s.Name }

// List implements member.Source.
func (s *Source) List(ctx context.Context) ([]*member.Candidate, error) {
	list, err := s.Client.CoreV1().Secrets(s.Namespace).List(ctx,
		metav1.ListOptions{LabelSelector: label + "," + s.Selector})
	if err != nil {
		return nil, err
	}
	candidates := make([]*member.Candidate, 0, len(list.Items))
	for i := range list.Items {
		candidates = append(candidates, Candidate(&list.Items[i], s.Heartbeats))
	}
	return candidates, nil
}

// config is the key config of a Secret, as far as it is believed.
type config struct {
	Username        string `json:"username"`
	BearerToken     string `json:"bearerToken"`
	ProxyURL        string `json:"proxyUrl"`
	TLSClientConfig struct {
		Insecure   bool   `json:"insecure"`
		ServerName string `json:"serverName"`
		CAData     []byte `json:"caData"`
		CertData   []byte `json:"certData"`
		KeyData    []byte `json:"keyData"`
	} `json:"tlsClientConfig"`
	AWSAuthConfig      *json.RawMessage `json:"awsAuthConfig"`
	ExecProviderConfig *struct {
		Command    string            `json:"command"`
		Args       []string          `json:"args"`
		Env        map[string]string `json:"env"`
		APIVersion string            `json:"apiVersion"`
	} `json:"execProviderConfig"`
}

// Candidate returns the candidate that a Secret is. heartbeats is the namespace of the heartbeat in the cluster.
func Candidate(secret *corev1.Secret, heartbeats string) *member.Candidate {
	is, err := accessOf(secret)
	is.Namespace = heartbeats
	return access.Candidate(secret, "Secret", secret.Name, is, err)
}

func accessOf(secret *corev1.Secret) (access.Access, error) {
	is := access.Access{Server: string(secret.Data["server"])}
	if is.Server == "" {
		return is, errors.New("the Secret has no data under the key \"server\": is it one of Argo CD?")
	}
	var has config
	if text := secret.Data["config"]; len(text) > 0 {
		if json.Unmarshal(text, &has) != nil {
			// The error of the parser may quote a token.
			return is, errors.New("the data under the key \"config\" is not the JSON that Argo CD reads: correct it")
		}
	}
	tls := has.TLSClientConfig
	is.ServerName, is.ProxyURL, is.CA, is.Insecure = tls.ServerName, has.ProxyURL, tls.CAData, tls.Insecure
	is.Token, is.Certificate, is.Key = has.BearerToken, tls.CertData, tls.KeyData
	switch exec := has.ExecProviderConfig; {
	case has.AWSAuthConfig != nil:
		return is, errors.New("awsAuthConfig is not supported: put a bearerToken or a client certificate into the Secret, " +
			"or join the cluster in another way")
	case exec != nil:
		is.Exec = &clientcmdapi.ExecConfig{
			Command: exec.Command, Args: exec.Args, APIVersion: exec.APIVersion,
			InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		}
		for _, name := range slices.Sorted(maps.Keys(exec.Env)) {
			is.Exec.Env = append(is.Exec.Env, clientcmdapi.ExecEnvVar{Name: name, Value: exec.Env[name]})
		}
	case is.Token == "" && len(is.Certificate) == 0 && has.Username != "":
		return is, errors.New("username and password are not supported: put a bearerToken into the Secret")
	case is.Token == "" && len(is.Certificate) == 0:
		return is, errors.New("the data under the key \"config\" has neither bearerToken nor tlsClientConfig.certData: " +
			"put one of them there")
	}
	return is, nil
}
