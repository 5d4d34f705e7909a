// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/progress"
)

// A store is an API server that keeps what is applied, by path. Whatever is a
// Deployment is available at once.
type store struct {
	*httptest.Server
	mu      sync.Mutex
	objects map[string]map[string]any
	writes  []string
}

func newStore(t *testing.T) *store {
	t.Helper()
	s := &store{objects: map[string]map[string]any{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *store) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	at, answer := request.URL.Path, any(nil)
	text, _ := io.ReadAll(request.Body)
	dry := request.URL.Query().Get("dryRun") != "" || bytes.Contains(text, []byte(`"dryRun":["All"]`))
	if request.Method != http.MethodGet && !dry {
		s.writes = append(s.writes, request.Method+" "+at)
	}
	object := s.objects[at]
	switch {
	case at == "/apis":
		fmt.Fprint(w, `{"kind":"APIGroupList","groups":[{"name":"multicluster.x-k8s.io","versions":`+
			`[{"groupVersion":"multicluster.x-k8s.io/v1beta1","version":"v1beta1"}]}]}`)
		return
	case request.Method == http.MethodPatch:
		applied := map[string]any{}
		if err := yaml.Unmarshal(text, &applied); err != nil {
			panic(err)
		}
		metadata := applied["metadata"].(map[string]any)
		metadata["managedFields"] = []any{map[string]any{"manager": request.URL.Query().Get("fieldManager")}}
		applied["status"] = map[string]any{"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}
		if answer = applied; !dry {
			s.objects[at] = applied
		}
	case object != nil && request.Method == http.MethodDelete:
		if answer = object; !dry {
			delete(s.objects, at)
		}
	case object != nil:
		answer = object
	case request.Method == http.MethodGet && !strings.ContainsAny(path.Base(at), "-."): // no name
		answer = s.list(at, request.URL.Query().Get("labelSelector"))
	}
	if answer == nil {
		w.WriteHeader(http.StatusNotFound)
		answer = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// list are the objects of a resource in all namespaces, or in the one of the path.
func (s *store) list(at, selector string) any {
	items := []any{}
	for name, object := range s.objects {
		resource, within := path.Base(path.Dir(name)), path.Dir(at)
		labels := (&unstructured.Unstructured{Object: object}).GetLabels()
		key, value, equals := strings.Cut(selector, "=")
		if resource == path.Base(at) && strings.HasPrefix(name, within) &&
			(selector == "" || labels[key] == value || !equals && labels[key] != "") {
			items = append(items, object)
		}
	}
	kind := map[string]string{"secrets": "SecretList"}[path.Base(at)] // typed clients look at it
	return map[string]any{"kind": cmp.Or(kind, "List"), "apiVersion": "v1", "items": items}
}

// put stores an object.
func (s *store) put(at, text string) {
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		panic(err)
	}
	s.objects[at] = object
}

// options are those of a cluster with this API server; out is what is told.
func (s *store) options(t *testing.T, out io.Writer) Options {
	t.Helper()
	c, err := cluster.FromConfig(&rest.Config{Host: s.URL}, "east", "clusterset-dns")
	if err != nil {
		t.Fatal(err)
	}
	return Options{Cluster: c, Teller: progress.Teller{Out: out, Results: out, Timeout: time.Minute}}
}

const (
	deployment = "/apis/apps/v1/namespaces/clusterset-dns/deployments/clusterset-controller"
	crd        = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/serviceexports.multicluster.x-k8s.io"
	secret     = "/api/v1/namespaces/clusterset-dns/secrets/member-west"
	namespace  = "/api/v1/namespaces/clusterset-dns"
)

// container has the flags and the image of the controller.
func (s *store) container(t *testing.T) (image string, args []string) {
	t.Helper()
	containers, _, err := unstructured.NestedSlice(s.objects[deployment], "spec", "template", "spec", "containers")
	if err != nil || len(containers) != 1 {
		t.Fatalf("%v: %v", containers, err)
	}
	args, _, _ = unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
	return containers[0].(map[string]any)["image"].(string), args
}

// TestInstallUpgradeUninstall does one after the other; nothing remains but the CRDs.
func TestInstallUpgradeUninstall(t *testing.T) {
	s, out := newStore(t), &bytes.Buffer{}
	o := s.options(t, out)
	o.ID, o.Image = "east", "registry.example.org/controller:v9"
	if err := Install(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	image, args := s.container(t)
	if image != o.Image || !slices.Contains(args, "--cluster-id=east") || !slices.Contains(args, "--stale-after=30s") ||
		len(s.objects) < 20 || s.objects[crd] == nil {
		t.Errorf("%d objects, %s %q:\n%s", len(s.objects), image, args, out)
	}
	// What the user changed stays; the version of the image is the shipped one.
	template := s.objects[deployment]["spec"].(map[string]any)["template"].(map[string]any)
	containers := template["spec"].(map[string]any)["containers"].([]any)
	containers[0].(map[string]any)["args"] = []any{
		"--cluster-id", "east", "--stale-after=1m", "--member=a=b", "--member=c=d",
	}
	if err := Install(t.Context(), s.options(t, out)); err != nil {
		t.Fatal(err)
	}
	image, args = s.container(t)
	want := []string{
		"--namespace=clusterset-dns", "--cluster-id=east", "--stale-after=1m", "--member=a=b", "--member=c=d",
		"--bind-address=:8080",
	}
	if image != "registry.example.org/controller:0.1.0" || !slices.Equal(args[:len(want)], want) {
		t.Errorf("after the upgrade: %s %q", image, args)
	}
	before := slices.Clone(args)
	if err := Install(t.Context(), s.options(t, out)); err != nil {
		t.Fatal(err)
	}
	if _, args = s.container(t); !slices.Equal(args, before) {
		t.Errorf("the same again: %q, was %q", args, before)
	}
	s.put("/apis/multicluster.x-k8s.io/v1beta1/namespaces/shop/serviceexports/db",
		"{kind: ServiceExport, apiVersion: multicluster.x-k8s.io/v1beta1, metadata: {name: db, namespace: shop}}")
	s.put("/api/v1/namespaces/shop/services/derived-1", "{kind: Service, apiVersion: v1, metadata: {name: derived-1, "+
		"namespace: shop, labels: {app.kubernetes.io/managed-by: clusterset-controller.clusterset-dns.github.io}}}")
	s.put("/api/v1/namespaces/shop/services/db", "{kind: Service, apiVersion: v1, metadata: {name: db, namespace: shop}}")
	dry := s.options(t, out)
	dry.DryRun, s.writes = true, nil
	if err := Uninstall(t.Context(), dry, false); err != nil || len(s.writes) > 0 {
		t.Errorf("dry run: %v, %q", err, s.writes)
	}
	if err := Uninstall(t.Context(), s.options(t, out), false); err != nil {
		t.Fatal(err)
	}
	if s.writes[0] != "DELETE "+deployment || !strings.Contains(out.String(), "east: 1 ServiceExports stay") {
		t.Errorf("%q:\n%s", s.writes, out)
	}
	for at := range s.objects {
		if !strings.Contains(at, "customresourcedefinitions") && !strings.HasPrefix(path.Base(at), "db") {
			t.Errorf("%s remains", at)
		}
	}
	if err := Uninstall(t.Context(), s.options(t, out), true); err != nil || s.objects[crd] != nil {
		t.Errorf("--crds: %v", err)
	}
}

// TestRefusals changes nothing.
func TestRefusals(t *testing.T) {
	const helm = "kind: %s, apiVersion: v1, metadata: {name: x, labels: {app.kubernetes.io/name: clusterset-dns, " +
		"app.kubernetes.io/managed-by: Helm}, " +
		"annotations: {meta.helm.sh/release-name: mcs, meta.helm.sh/release-namespace: a}}"
	for name, test := range map[string]struct {
		at, text string
		id       string
		do       func(Options) error
		want     string
	}{
		"Helm owns the installation": {
			deployment, "{" + fmt.Sprintf(helm, "Deployment") + "}", "east",
			func(o Options) error { return Install(t.Context(), o) }, "release a/mcs): use helm upgrade",
		},
		"Helm owns what is to go": {
			"/apis/apps/v1/namespaces/clusterset-dns/deployments/x", "{" + fmt.Sprintf(helm, "Deployment") + "}", "",
			func(o Options) error { return Uninstall(t.Context(), o, false) }, "release a/mcs): use helm uninstall",
		},
		"a named set": {
			"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/clusterset-controller-blue",
			strings.Replace("{"+fmt.Sprintf(helm, "ClusterRoleBinding")+"}", "name: x", "name: clusterset-controller-blue", 1), "",
			func(o Options) error { return Uninstall(t.Context(), o, false) }, "the controller of cluster set blue is installed, too",
		},
		"no id":    {"/x/x", "{}", "", func(o Options) error { return Install(t.Context(), o) }, "set --cluster-id"},
		"a bad id": {"/x/x", "{}", "East", func(o Options) error { return Install(t.Context(), o) }, "East"},
		"CoreDNS needs the CRDs": {
			"/api/v1/namespaces/kube-system/configmaps/coredns", "{kind: ConfigMap, apiVersion: v1, data: " +
				`{Corefile: "clusterset.local {\n  import /etc/clusterset-dns/*.conf\n}\n"}}`, "",
			func(o Options) error { return Uninstall(t.Context(), o, true) }, "has multicluster, which needs the CRDs",
		},
		"members": {
			secret, "{kind: Secret, apiVersion: v1, metadata: {name: member-west, namespace: clusterset-dns, " +
				"labels: {clusterset-dns.github.io/cluster: west}}}", "",
			func(o Options) error { return Uninstall(t.Context(), o, false) }, "has members (west)",
		},
	} {
		s := newStore(t)
		s.put(test.at, test.text)
		o := s.options(t, io.Discard)
		o.ID, o.Image = test.id, "registry.example.org/controller:v9"
		if err := test.do(o); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v", name, err)
		}
		if len(s.writes) > 0 {
			t.Errorf("%s: %q", name, s.writes)
		}
	}
}

// TestForeignCRDsStay leaves the CRDs of another implementation.
func TestForeignCRDsStay(t *testing.T) {
	s, out := newStore(t), &bytes.Buffer{}
	s.put(crd, "{kind: CustomResourceDefinition, apiVersion: apiextensions.k8s.io/v1, "+
		"metadata: {name: serviceexports.multicluster.x-k8s.io}}")
	o := s.options(t, out)
	o.ID, o.Image = "east", "registry.example.org/controller:v9"
	if err := Install(t.Context(), o); err != nil || slices.Contains(s.writes, "PATCH "+crd) ||
		!strings.Contains(out.String(), "serviceexports.multicluster.x-k8s.io was not installed by this command: it stays") {
		t.Errorf("got %v: %q\n%s", err, s.writes, out)
	}
}

func TestUpgradedImage(t *testing.T) {
	for _, test := range []struct{ running, shipped, wanted, want string }{
		{"", "a/c:1", "x", "x"},
		{"", "registry.example.org/c:1", "", "registry.example.org/c:1"},
		{"", "clusterset-dns/c:1", "", ""},
		{"localhost:5000/c:0", "clusterset-dns/c:1", "", "localhost:5000/c:1"},
		{"localhost:5000/c", "clusterset-dns/c:1", "", "localhost:5000/c:1"},
		{"registry.example.org/c@sha256:00", "clusterset-dns/c:1", "", ""},
		{"registry.example.org/c@sha256:00", "clusterset-dns/c:1", "x", "x"},
	} {
		got, err := upgraded(test.running, test.shipped, test.wanted)
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%+v: got %q, %v", test, got, err)
		}
	}
}
