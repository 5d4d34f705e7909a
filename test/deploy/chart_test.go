// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/mcs-api/config/crd"
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
