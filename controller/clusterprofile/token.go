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
