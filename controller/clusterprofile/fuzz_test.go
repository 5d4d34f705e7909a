// SPDX-License-Identifier: Apache-2.0

package clusterprofile

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// FuzzCandidate: any content of an object gives the same candidate twice, and no connection through a proxy or with a token for
// another server. The fuzz test of package member has the rules for kubeconfigs.
func FuzzCandidate(f *testing.F) {
	for _, seed := range []string{
		`{"status":{"accessProviders":[{"name":"secretreader","cluster":{"server":"https://192.0.2.1"}}]}}`,
		`{"status":{"accessProviders":[{"name":"secretreader","cluster":{"server":"https://192.0.2.2"}}]}}`,
		`{"status":{"accessProviders":[{"name":"secretreader","cluster":{"certificate-authority-data":7}}]}}`,
	} {
		f.Add([]byte(seed))
	}
	permitted := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{tokenOfLabel: "x"},
			Annotations: map[string]string{serverAnnotation: "https://192.0.2.1"},
		},
		Data: map[string][]byte{"token": []byte("permitted")},
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		object := map[string]any{}
		if json.Unmarshal(text, &object) != nil || object == nil {
			return
		}
		delete(object, "metadata")
		is := &unstructured.Unstructured{Object: object}
		is.SetName("x")
		source := &clusterProfiles{heartbeats: "n"}
		each, again := source.candidate(is, permitted), source.candidate(is, permitted)
		if each.Cluster != again.Cluster || !bytes.Equal(each.Kubeconfig, again.Kubeconfig) ||
			(each.Err == nil) != (again.Err == nil) {
			t.Fatalf("%s is %v, then %v", each, each, again)
		}
		if each.Err != nil {
			return
		}
		credential, err := member.ParseKubeconfig(each.Kubeconfig)
		if err != nil {
			return
		}
		config := credential.Config
		if config.Proxy != nil || config.BearerToken == "permitted" && config.Host != "https://192.0.2.1" {
			t.Fatalf("%s has a proxy, or sends the token to %s", each, config.Host)
		}
		if credential.Namespace != "n" {
			t.Fatalf("%s has %v", each, config)
		}
	})
}

// FuzzForm: a value of --members-from that is accepted has no spaces, so that it can be a part of an annotation.
func FuzzForm(f *testing.F) {
	for _, seed := range []string{"clusterprofile:a", "clusterprofile:a:b in (c,d)", "clusterprofile:a:b=c:d/e"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if source, err := New(text, "", nil, nil); err == nil && (source.String() != text || strings.Contains(text, " ")) {
			t.Fatalf("%q is %q", text, source)
		}
	})
}
