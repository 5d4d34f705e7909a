// SPDX-License-Identifier: Apache-2.0

package clusterprofile

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// listKinds are the resources of the fixtures.
var listKinds = map[schema.GroupVersionResource]string{
	{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Resource: "clusterprofiles"}: "ClusterProfileList",
	{Group: "multicluster.x-k8s.io", Version: "v1alpha2", Resource: "clusterprofiles"}: "ClusterProfileList",
}

// profilesOf makes a source of the objects of the fixture.
func profilesOf(t *testing.T, form string) (member.Source, *fake.Clientset, *dynamicfake.FakeDynamicClient) {
	t.Helper()
	text, err := os.ReadFile("testdata/clusterprofile.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var secrets, others []runtime.Object
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		object, secret := &unstructured.Unstructured{}, &corev1.Secret{}
		if err := errors.Join(yaml.Unmarshal([]byte(document), object), yaml.Unmarshal([]byte(document), secret)); err != nil {
			t.Fatal(err)
		}
		if secret.Kind == "Secret" {
			secrets = append(secrets, secret)
		} else {
			others = append(others, object)
		}
	}
	client := fake.NewClientset(secrets...)
	objects := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), listKinds, others...)
	source, err := New(form, "clusterset-dns", client, objects)
	if err != nil {
		t.Fatal(err)
	}
	return source, client, objects
}

// shown returns id, object, server and credential of a candidate, or its error.
func shown(c *member.Candidate) string {
	text := c.Cluster + ": " + c.String()
	err := c.Err
	var credential member.Credential
	if err == nil {
		credential, err = member.ParseKubeconfig(c.Kubeconfig)
	}
	if err != nil {
		return text + ": " + err.Error()
	}
	config := credential.Config
	text += " " + config.Host + " in " + credential.Namespace
	if len(config.CAData) > 0 {
		text += " ca"
	}
	if len(config.CertData) > 0 {
		text += " certificate"
	}
	return text + " " + config.BearerToken
}

// TestClusterProfiles: the candidates that objects of other systems become.
func TestClusterProfiles(t *testing.T) {
	for text, parts := range map[string][]string{
		"clusterprofile:fleet": {
			"garbage: ClusterProfile fleet/garbage: status.accessProviders does not have the form",
			"gke: ClusterProfile fleet/gke: status.accessProviders does not have secretreader",
			"none: ClusterProfile fleet/none: status.accessProviders does not have secretreader",
			"proxied: ClusterProfile fleet/proxied: a proxy in an inventory is refused",
			"tokenless: ClusterProfile fleet/tokenless: there is no Secret clusterset-dns/tokenless with the label",
			"west: ClusterProfile fleet/west https://west.example.org:6443 in clusterset-dns ca west-token",
		},
		"clusterprofile:fleet:x-k8s.io/cluster-manager=manager,clusterset-dns.github.io/cluster!=west": {
			"garbage: ", "gke: ", "none: ", "proxied: ", "tokenless: ",
			"unlabelled: ClusterProfile fleet/unlabelled: there is no Secret clusterset-dns/unlabelled",
		},
		"clusterprofile:elsewhere": nil,
	} {
		t.Run(text, func(t *testing.T) {
			source, client, _ := profilesOf(t, text)
			candidates, err := source.List(t.Context())
			if err != nil || len(client.Actions()) != 1 { // a request for each object would take too long
				t.Fatalf("%v, after %v", err, client.Actions())
			}
			var got []string
			for _, each := range candidates {
				got = append(got, shown(each))
				if each.Object == nil || each.Annotations["manager.example.org/seen"] != "" {
					t.Errorf("%s has the object %v and the annotations %v", each, each.Object, each.Annotations)
				}
			}
			slices.Sort(got)
			if len(got) != len(parts) {
				t.Fatalf("%d candidates, want %d:\n%s", len(got), len(parts), strings.Join(got, "\n"))
			}
			for i, want := range parts {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("got %s\nwant %s", got[i], want)
				}
				if strings.Contains(got[i], "secret-token") {
					t.Errorf("an error quotes a token: %s", got[i])
				}
			}
		})
	}
}

// TestUnreadableInventory: an error of any request fails the whole list, so that no member leaves.
func TestUnreadableInventory(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", errors.New("no"))
	for _, resource := range []string{"secrets", "clusterprofiles"} {
		source, client, objects := profilesOf(t, "clusterprofile:fleet")
		fail := func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, forbidden }
		client.PrependReactor("list", resource, fail)
		objects.PrependReactor("list", resource, fail)
		if list, err := source.List(t.Context()); !apierrors.IsForbidden(err) || len(list) > 0 {
			t.Errorf("%s: %v, %v", resource, list, err)
		}
	}
}

// TestForm: the values of --members-from.
func TestForm(t *testing.T) {
	for text, want := range map[string]string{
		"clusterprofile:fleet":            "fleet " + member.ClusterLabel,
		"clusterprofile:fleet:env=prod":   "fleet env=prod",
		"clusterprofile:x:env in (a,b)":   "",
		"clusterprofile:x:env=prod:label": "",
		"clusterprofile:a/b":              "",
		"clusterprofile:x:=":              "",
		"directory:/etc/members":          "",
		"":                                "",
	} {
		source, err := New(text, "clusterset-dns", nil, nil)
		got := ""
		if is, ok := source.(*clusterProfiles); ok {
			got = is.namespace + " " + is.selector
		}
		if got != want || err != nil && !strings.Contains(err.Error(), "use") {
			t.Errorf("%q is %q (%v), want %q", text, got, err, want)
		}
	}
}

// TestTokenOfAnotherSecret: an object of an inventory cannot make the controller send a token of its namespace that is not
// for this cluster at this server. In each row the Secret that the object names differs from a valid one.
func TestTokenOfAnotherSecret(t *testing.T) {
	const tokenOf, server = "clusterset-dns.github.io/token-of", "clusterset-dns.github.io/server"
	for name, test := range map[string]struct {
		change  func(*corev1.Secret)
		refused bool
	}{
		"valid":               {func(*corev1.Secret) {}, false},
		"no label":            {func(secret *corev1.Secret) { delete(secret.Labels, tokenOf) }, true},
		"token of another":    {func(secret *corev1.Secret) { secret.Labels[tokenOf] = "other" }, true},
		"no server":           {func(secret *corev1.Secret) { secret.Annotations = nil }, true},
		"another server":      {func(secret *corev1.Secret) { secret.Annotations[server] += ".test" }, true},
		"no token":            {func(secret *corev1.Secret) { delete(secret.Data, "token") }, true},
		"token of an account": {func(secret *corev1.Secret) { secret.Type = corev1.SecretTypeServiceAccountToken }, true},
	} {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Name: "west", Namespace: "clusterset-dns", Labels: map[string]string{tokenOf: "west"},
				Annotations: map[string]string{server: "https://west.example.org:6443"},
			},
			Data: map[string][]byte{"token": []byte("valuable")},
		}
		test.change(secret)
		got, err := profileToken(secret, "west", "https://west.example.org:6443")
		switch {
		case !test.refused && (got != "valuable" || err != nil):
			t.Errorf("%s: %q, %v", name, got, err)
		case test.refused && (got != "" || err == nil || strings.Contains(err.Error(), "valuable") || err.Error() !=
			`the Secret clusterset-dns/west has no token for the member west at "https://west.example.org:6443": if the server is right, `+
				`create it with the type Opaque, the label clusterset-dns.github.io/token-of=west, the annotation `+
				`clusterset-dns.github.io/server="https://west.example.org:6443", and the token under the key "token"`):
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
