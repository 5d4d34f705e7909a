// SPDX-License-Identifier: Apache-2.0

// Package clusterprofile lists the ClusterProfiles (KEP-4322) of an inventory as candidates for members.
package clusterprofile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"k8s.io/klog/v2"

	"github.com/clusterset-dns/clusterset-dns/controller/local"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// Form is the form of a value of --members-from.
const Form = "clusterprofile:<namespace>[:<selector>]"

// profileProvider is the name of the access provider whose credential is the token in a Secret with the name of the
// ClusterProfile, in the namespace of the consumer.
const profileProvider = "secretreader"

const (
	// tokenKey is the key of the token in the Secrets of the credential plugin secretreader (KEP-4322).
	tokenKey = "token"
	// tokenOfLabel on a Secret in the controller's namespace: id of the inventory's member that the token belongs to.
	tokenOfLabel = "clusterset-dns.github.io/token-of"
	// serverAnnotation on a Secret in the controller's namespace: the only server to which the token is sent.
	serverAnnotation = "clusterset-dns.github.io/server"
)

var (
	profileResource = schema.GroupResource{Group: "multicluster.x-k8s.io", Resource: "clusterprofiles"}
	profileVersions = []string{"v1alpha2", "v1alpha1"}
	// believedPrefix begins the annotations of an object that are used.
	believedPrefix = strings.TrimSuffix(member.ClusterLabel, "cluster")
)

// clusterProfiles lists the ClusterProfiles of a namespace that a selector selects and that have an access provider
// secretreader. An object is not trusted: docs/operate/members.md lists the fields that are read.
type clusterProfiles struct {
	name, namespace, selector string
	dynamic                   dynamic.Interface
	client                    kubernetes.Interface
	// heartbeats is the namespace of the heartbeat in the members, and of the Secrets with their tokens in the local cluster.
	heartbeats string
}

// New makes a source from a value of --members-from, which has the Form; the error says what to correct. Without a selector,
// the objects with label member.ClusterLabel are selected. heartbeats is the namespace of the controller. It sends no request.
func New(text, heartbeats string, client kubernetes.Interface, objects dynamic.Interface) (member.Source, error) {
	kind, rest, _ := strings.Cut(text, ":")
	namespace, selector, selects := strings.Cut(rest, ":")
	if !selects {
		selector = member.ClusterLabel
	}
	if kind != "clusterprofile" || len(validation.IsDNS1123Label(namespace)) > 0 {
		return nil, fmt.Errorf("%q: use %s", text, Form)
	}
	if parsed, err := labels.Parse(selector); err != nil || parsed.Empty() || strings.Contains(text, " ") {
		return nil, fmt.Errorf("%q: after the second colon, use a label selector without spaces, such as env=prod", text)
	}
	return &clusterProfiles{
		name: text, namespace: namespace, selector: selector, client: client, dynamic: objects, heartbeats: heartbeats,
	}, nil
}

// String implements member.Source.
func (s *clusterProfiles) String() string { return s.name }

// List implements member.Source.
func (s *clusterProfiles) List(ctx context.Context) ([]*member.Candidate, error) {
	list, err := local.ListServed(ctx, s.dynamic, profileResource, profileVersions, s.namespace,
		metav1.ListOptions{LabelSelector: s.selector})
	if err != nil {
		return nil, err
	}
	held, err := s.client.CoreV1().Secrets(s.heartbeats).List(ctx, metav1.ListOptions{LabelSelector: tokenOfLabel})
	if err != nil {
		return nil, err
	}
	secrets := map[string]*corev1.Secret{}
	for i := range held.Items {
		secrets[held.Items[i].Name] = &held.Items[i]
	}
	candidates := make([]*member.Candidate, 0, len(list.Items))
	for i := range list.Items {
		candidates = append(candidates, s.candidate(&list.Items[i], secrets[list.Items[i].GetName()]))
	}
	return candidates, nil
}

// profile has the fields of a ClusterProfile that are used.
type profile struct {
	Status struct {
		AccessProviders []struct {
			Name    string              `json:"name"`
			Cluster clientcmdv1.Cluster `json:"cluster"`
		} `json:"accessProviders"`
	} `json:"status"`
}

// candidate returns the candidate for a ClusterProfile. secret has the token, if profileToken permits it; nil if it does not
// exist. Equal arguments give equal kubeconfigs, which ParseKubeconfig has to check.
func (s *clusterProfiles) candidate(object *unstructured.Unstructured, secret *corev1.Secret) *member.Candidate {
	c := &member.Candidate{
		Cluster: object.GetName(), Kind: "ClusterProfile", Name: cache.MetaObjectToName(object).String(),
		// Without the other fields, which change more often than the candidate.
		Object: &corev1.ObjectReference{
			APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
			UID: object.GetUID(),
		},
		Annotations: maps.Clone(object.GetAnnotations()),
	}
	maps.DeleteFunc(c.Annotations, func(key, _ string) bool { return !strings.HasPrefix(key, believedPrefix) })
	c.Kubeconfig, c.Err = s.kubeconfig(object, secret)
	return c
}

func (s *clusterProfiles) kubeconfig(object *unstructured.Unstructured, secret *corev1.Secret) ([]byte, error) {
	var has profile
	if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &has) != nil {
		return nil, errors.New("status.accessProviders does not have the form of KEP-4322: correct its cluster manager")
	}
	for _, each := range has.Status.AccessProviders {
		if each.Name != profileProvider {
			continue
		}
		is := each.Cluster
		if secret == nil {
			return nil, fmt.Errorf("there is no Secret %s/%s with the label %s=%s: create or label it, with the token under the key %q",
				s.heartbeats, object.GetName(), tokenOfLabel, object.GetName(), tokenKey)
		}
		token, err := profileToken(secret, object.GetName(), is.Server)
		if err != nil {
			return nil, err
		}
		if is.ProxyURL != "" {
			// The URL may have a password.
			return nil, errors.New("a proxy in an inventory is refused: remove it, or join the cluster with a kubeconfig in a " +
				"Secret of the controller's namespace")
		}
		const name = "member"
		config := clientcmdapi.NewConfig()
		config.Clusters[name] = &clientcmdapi.Cluster{
			Server: is.Server, TLSServerName: is.TLSServerName, CertificateAuthorityData: is.CertificateAuthorityData,
			InsecureSkipTLSVerify: is.InsecureSkipTLSVerify,
		}
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: s.heartbeats}
		config.CurrentContext = name
		return clientcmd.Write(*config)
	}
	return nil, fmt.Errorf("status.accessProviders does not have %s: wait for its cluster manager or configure it, or join the cluster "+
		"in another way", profileProvider)
}

// profileToken returns the token of a Secret in the controller's namespace for a member at a server. An object of an inventory
// names all three, and is not trusted. So the Secret itself must permit this member and this server. An error says what to set,
// and quotes no token.
func profileToken(secret *corev1.Secret, id, server string) (string, error) {
	if secret.Type == corev1.SecretTypeServiceAccountToken || // its token is of the local cluster
		id == "" || secret.Labels[tokenOfLabel] != id ||
		server == "" || secret.Annotations[serverAnnotation] != server ||
		len(secret.Data[tokenKey]) == 0 {
		return "", fmt.Errorf("the Secret %s has no token for the member %s at %.200q: if the server is right, create it with the type %s, "+
			"the label %s=%s, the annotation %s=%.200q, and the token under the key %q", klog.KObj(secret), id, server,
			corev1.SecretTypeOpaque, tokenOfLabel, id, serverAnnotation, server, tokenKey)
	}
	return string(secret.Data[tokenKey]), nil
}
