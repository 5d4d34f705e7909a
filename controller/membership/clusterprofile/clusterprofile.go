// SPDX-License-Identifier: Apache-2.0

// Package clusterprofile proposes the clusters of an inventory as members: ClusterProfiles (KEP-4322) with an access
// provider secretreader.
package clusterprofile

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/membership/access"
)

// provider is the name of the access provider whose credential is the token in a Secret with the name of the
// ClusterProfile, in the namespace of the consumer.
const provider = "secretreader"

var (
	resource = schema.GroupResource{Group: "multicluster.x-k8s.io", Resource: "clusterprofiles"}
	versions = []string{"v1alpha2", "v1alpha1"}
)

// A Source lists the ClusterProfiles of a namespace that Selector selects.
type Source struct {
	Name, Namespace, Selector string
	Dynamic                   dynamic.Interface
	Client                    kubernetes.Interface
	// Heartbeats is the namespace of the heartbeat in the clusters, and of the Secrets with their tokens here.
	Heartbeats string
}

// String implements member.Source.
func (s *Source) String() string { return s.Name }

// List implements member.Source.
func (s *Source) List(ctx context.Context) ([]*member.Candidate, error) {
	list, err := access.List(ctx, s.Dynamic, resource, versions, s.Namespace, s.Selector)
	if err != nil {
		return nil, err
	}
	candidates := make([]*member.Candidate, 0, len(list.Items))
	for i := range list.Items {
		profile := &list.Items[i]
		secret, err := access.Secret(ctx, s.Client, s.Heartbeats, profile.GetName())
		if err != nil {
			return nil, err
		}
		candidates = append(candidates, Candidate(profile, secret, s.Heartbeats))
	}
	return candidates, nil
}

// profile is a ClusterProfile, as far as it is believed.
type profile struct {
	Status struct {
		AccessProviders     []accessProvider `json:"accessProviders"`
		CredentialProviders []accessProvider `json:"credentialProviders"` // their name before v0.1
	} `json:"status"`
}

type accessProvider struct {
	Name    string `json:"name"`
	Cluster struct {
		Server        string `json:"server"`
		TLSServerName string `json:"tls-server-name"`
		Insecure      bool   `json:"insecure-skip-tls-verify"`
		CA            []byte `json:"certificate-authority-data"`
		ProxyURL      string `json:"proxy-url"`
	} `json:"cluster"`
}

// Candidate returns the candidate that a ClusterProfile is. secret has the token, if access.Token permits it; nil if it does
// not exist. heartbeats is the namespace of the heartbeat in the cluster, and of the secret here.
func Candidate(object *unstructured.Unstructured, secret *corev1.Secret, heartbeats string) *member.Candidate {
	is, err := accessOf(object, secret, heartbeats)
	return access.Candidate(object, "ClusterProfile", object.GetName(), is, err)
}

func accessOf(
	object *unstructured.Unstructured, secret *corev1.Secret, namespace string,
) (is access.Access, err error) {
	is.Namespace = namespace
	var has profile
	if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &has) != nil {
		return is, errors.New("status.accessProviders does not have the form of KEP-4322: correct its cluster manager")
	}
	providers := has.Status.AccessProviders
	if len(providers) == 0 {
		providers = has.Status.CredentialProviders
	}
	var names []string
	for _, each := range providers {
		names = append(names, each.Name)
		if each.Name != provider {
			continue
		}
		cluster := each.Cluster
		is.Server, is.ServerName, is.ProxyURL = cluster.Server, cluster.TLSServerName, cluster.ProxyURL
		is.CA, is.Insecure = cluster.CA, cluster.Insecure
		if secret == nil {
			return is, fmt.Errorf("there is no Secret %s/%s with a token under the key %q: create it", namespace,
				object.GetName(), access.TokenKey)
		}
		is.Token, err = access.Token(secret, access.ID(object, object.GetName()), is.Server)
		return is, err
	}
	if len(names) == 0 {
		return is, errors.New("status.accessProviders is empty: wait for its cluster manager, or configure it")
	}
	return is, fmt.Errorf("status.accessProviders has %s, but not %s: add it, or join the cluster in another way",
		strings.Join(names, ", "), provider)
}
