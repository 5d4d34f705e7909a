// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/mcs-api/config/crd"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
	"github.com/clusterset-dns/clusterset-dns/test/pki"
)

// TestManifestsAreCurrent renders the plain manifests again, and compares them. Helm 3 renders the chart like Helm 4.
func TestManifestsAreCurrent(t *testing.T) {
	into := t.TempDir()
	t.Setenv("HELM", helm(t))
	run(t, "", root+"/deploy/render", into)
	for _, file := range []string{"manifest.yaml", "rbac.yaml", "coredns-rbac.yaml"} {
		want, got := read(t, filepath.Join(into, file)), read(t, filepath.Join(root, "deploy", file))
		if difference := cmp.Diff(want, got); difference != "" {
			t.Errorf("deploy/%s is not what the chart gives: run `make manifest` (- chart, + file):\n%s", file, difference)
		}
	}
	flags := []string{"--kube-version=v1.37.0", "--set=coredns.enabled=true"}
	if difference := cmp.Diff(objects(t, templateBy(t, helm(t), flags...)), objects(t, templateBy(t, helm3(t), flags...))); difference != "" {
		t.Errorf("Helm 4 renders other objects than Helm 3 (- 4, + 3):\n%s", difference)
	}
}

// TestCRDsAreCurrent compares the chart's copies with the module's files.
func TestCRDsAreCurrent(t *testing.T) {
	for file, want := range map[string][]byte{
		"multicluster.x-k8s.io_serviceexports.yaml": crd.ServiceExportCRD,
		"multicluster.x-k8s.io_serviceimports.yaml": crd.ServiceImportCRD,
	} {
		if got := read(t, filepath.Join(chart, "files", "crds", file)); got != string(want) {
			t.Errorf("deploy/chart/files/crds/%s is not that of sigs.k8s.io/mcs-api: run `make manifest`", file)
		}
	}
}

func read(t testing.TB, path string) string {
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

// TestMembersFromValues parses the members that the chart renders, as the controller does. TestProjectedToken covers
// members with an audience.
func TestMembersFromValues(t *testing.T) {
	values := filepath.Join(t.TempDir(), "values.yaml")
	certificate, _, err := pki.SelfSigned([]string{"west"})
	must(t, err)
	ca := string(certificate)
	must(t, os.WriteFile(values, []byte(`members:
- {id: west.example, server: "https://west:6443", token: secret, annotations: {clusterset-dns.github.io/rank: "5"},
  caBundle: `+strconv.Quote(ca)+`}
- {id: north, server: "https://north", tokenFile: /tokens/north, annotations: {clusterset-dns.github.io/cidrs: 10.3.0.0/16},
  accept: [shop, team-*/db]}
`), 0o600))
	rendered := template(t, "--values", values)
	if strings.Count(rendered, "secret\n") != 1 || !strings.Contains(rendered, "- --member=north=/etc/clusterset-dns/members/north\n") {
		t.Errorf("the token is not in one place, or the controller does not read north:\n%s", rendered)
	}
	found := map[string]*unstructured.Unstructured{}
	for _, object := range objects(t, rendered) {
		found[object.GetName()] = object
	}
	west := found["member-west.example"]
	text, _, _ := unstructured.NestedString(west.Object, "stringData", member.KubeconfigKey)
	credential, err := member.ParseKubeconfig([]byte(text))
	must(t, err)
	if c := credential.Config; c.Host != "https://west:6443" || c.BearerToken != "secret" || string(c.CAData) != ca ||
		credential.Namespace != system || west.GetLabels()[member.ClusterLabel] != "west.example" ||
		west.GetAnnotations()[member.RankAnnotation] != "5" {
		t.Errorf("credential %v from\n%v", credential, west)
	}
	text, _, _ = unstructured.NestedString(found["clusterset-members"].Object, "data", "north")
	path := filepath.Join(t.TempDir(), "north")
	must(t, os.WriteFile(path, []byte(strings.Replace(text, "/tokens/north", values, 1)), 0o600))
	credential, err = member.LoadKubeconfig(path)
	must(t, err)
	if credential.Config.Host != "https://north" || credential.Config.BearerTokenFile != values ||
		credential.Namespace != system || credential.Annotations[member.CIDRsAnnotation] != "10.3.0.0/16" ||
		credential.Annotations[scope.AcceptAnnotation] != "shop,team-*/db" {
		t.Errorf("credential %v from\n%s", credential, text)
	}
}

// TestPodsAreConfined checks every container of the chart for settings that Pod security admission, which
// TestServerTakesAllValues asks, does not require.
func TestPodsAreConfined(t *testing.T) {
	deployments := 0
	for _, object := range objects(t, template(t, "--set", "coredns.enabled=true")) {
		if object.GetKind() != "Deployment" {
			continue
		}
		deployments++
		var deployment appsv1.Deployment
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &deployment))
		if *deployment.Spec.Replicas != 2 {
			t.Errorf("%s has %d replicas", deployment.Name, *deployment.Spec.Replicas)
		}
		for _, c := range deployment.Spec.Template.Spec.Containers {
			if !*c.SecurityContext.ReadOnlyRootFilesystem || c.Resources.Requests.Cpu().IsZero() ||
				c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() || c.LivenessProbe == nil ||
				c.ReadinessProbe == nil {
				t.Errorf("%s lacks a read-only file system, resources or probes: %v", deployment.Name, c)
			}
		}
	}
	if deployments != 2 {
		t.Errorf("%d Deployments, want 2", deployments)
	}
}
