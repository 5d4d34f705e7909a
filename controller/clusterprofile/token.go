// SPDX-License-Identifier: Apache-2.0

package clusterprofile

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

const (
	// tokenKey is the key of the token in the Secrets of the credential plugin secretreader (KEP-4322).
	tokenKey = "token"
	// tokenOfLabel on a Secret in the controller's namespace: id of the inventory's member that the token belongs to.
	tokenOfLabel = "clusterset-dns.github.io/token-of"
	// serverAnnotation on a Secret in the controller's namespace: the only server to which the token is sent.
	serverAnnotation = "clusterset-dns.github.io/server"
)

// profileToken returns the token of a Secret in the controller's namespace for a member at a server. An object of an inventory
// names all three, and is not trusted. So the Secret itself must permit this member and this server. An error says what to set,
// and quotes no token.
func profileToken(secret *corev1.Secret, id, server string) (string, error) {
	name := klog.KObj(secret)
	switch {
	case secret.Type == corev1.SecretTypeServiceAccountToken:
		return "", fmt.Errorf("the Secret %s has the type %s, so its token is of the local cluster: create a Secret of type %s "+
			"with the token of the member", name, secret.Type, corev1.SecretTypeOpaque)
	case id == "" || secret.Labels[tokenOfLabel] != id:
		return "", fmt.Errorf("the Secret %s does not have the label %s=%s: set it if the token is for that member", name,
			tokenOfLabel, id)
	case server == "" || secret.Annotations[serverAnnotation] != server:
		return "", fmt.Errorf("the Secret %s does not have the annotation %s=%.200q: set it if that is the API server of the "+
			"member %s, else correct the server in the inventory", name, serverAnnotation, server, id)
	case len(secret.Data[tokenKey]) == 0:
		return "", fmt.Errorf("the Secret %s has no token under the key %q: put it there", name, tokenKey)
	}
	return string(secret.Data[tokenKey]), nil
}
