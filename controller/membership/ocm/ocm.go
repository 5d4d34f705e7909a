// SPDX-License-Identifier: Apache-2.0

// Package ocm proposes the clusters of a hub of Open Cluster Management as members: ManagedClusters, with the token of a
// ManagedServiceAccount.
package ocm

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/membership/access"
)

// DefaultAccount is the name of the ManagedServiceAccounts.
const DefaultAccount = "clusterset-dns"

// tokenLabel marks a Secret with a token of a ManagedServiceAccount.
const tokenLabel = "authentication.open-cluster-management.io/is-managed-serviceaccount"

var (
	resource = schema.GroupResource{Group: "cluster.open-cluster-management.io", Resource: "managedclusters"}
	versions = []string{"v1"}
)

// A Source lists the ManagedClusters that Selector selects.
type Source struct {
	Name, Selector string
	// Account is the name of the ManagedServiceAccount, and of its Secret, in the namespace of each cluster.
	Account string
	Dynamic dynamic.Interface
	Client  kubernetes.Interface
	// Heartbeats is the namespace of the heartbeat in the clusters.
	Heartbeats string
}

// String implements member.Source.
func (s *Source) String() string { return s.Name }

// List implements member.Source.
func (s *Source) List(ctx context.Context) ([]*member.Candidate, error) {
	list, err := access.List(ctx, s.Dynamic, resource, versions, "", s.Selector)
	if err != nil {
		return nil, err
	}
	candidates := make([]*member.Candidate, 0, len(list.Items))
	for i := range list.Items {
		secret, err := access.Secret(ctx, s.Client, list.Items[i].GetName(), s.Account)
		if err != nil {
			return nil, err
		}
		candidates = append(candidates, Candidate(&list.Items[i], s.Account, secret, s.Heartbeats))
	}
	return candidates, nil
}

// managedCluster is a ManagedCluster, as far as it is believed.
type managedCluster struct {
	Spec struct {
		ClientConfigs []struct {
			URL      string `json:"url"`
			CABundle []byte `json:"caBundle"`
		} `json:"managedClusterClientConfigs"`
	} `json:"spec"`
}

// Candidate returns the candidate that a ManagedCluster is. secret has the token of the ManagedServiceAccount, nil if it
// does not exist. heartbeats is the namespace of the heartbeat in the cluster.
func Candidate(
	object *unstructured.Unstructured, account string, secret *corev1.Secret, heartbeats string,
) *member.Candidate {
	is, err := accessOf(object, account, secret)
	is.Namespace = heartbeats
	return access.Candidate(object, "ManagedCluster", object.GetName(), is, err)
}

func accessOf(object *unstructured.Unstructured, account string, secret *corev1.Secret) (is access.Access, err error) {
	var has managedCluster
	if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &has) != nil {
		return is, errors.New("spec.managedClusterClientConfigs does not have the form of Open Cluster Management: correct it")
	}
	if len(has.Spec.ClientConfigs) == 0 || has.Spec.ClientConfigs[0].URL == "" {
		return is, errors.New("spec.managedClusterClientConfigs is empty: set the URL of the API server there")
	}
	is.Server, is.CA = has.Spec.ClientConfigs[0].URL, has.Spec.ClientConfigs[0].CABundle
	namespaced := object.GetName() + "/" + account
	switch {
	case secret == nil:
		return is, fmt.Errorf("there is no Secret %s: create the ManagedServiceAccount %s", namespaced, namespaced)
	case secret.Labels[tokenLabel] != "true" || len(secret.Data[access.TokenKey]) == 0:
		return is, fmt.Errorf("the Secret %s is not the token of a ManagedServiceAccount: create the ManagedServiceAccount %s",
			namespaced, namespaced)
	}
	is.Token = string(secret.Data[access.TokenKey])
	if len(is.CA) == 0 {
		is.CA = secret.Data[corev1.ServiceAccountRootCAKey]
	}
	return is, nil
}
