// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestValuesThatAreRefused gives the chart what its schema must not let pass.
func TestValuesThatAreRefused(t *testing.T) {
	for set, want := range map[string]string{
		"clusterID=east":                                  "clusterID",
		"clusterId=East":                                  "clusterId",
		"clusterId=a.b.c":                                 "clusterId",
		"clusterId=" + strings.Repeat("a", 64):            "clusterId",
		"image.tags=latest":                               "image",
		"image.pullPolicy=Sometimes":                      "pullPolicy",
		"deniedNamespaces={kube-*|demo}":                  "deniedNamespaces",
		"deniedNamespaces={Kube}":                         "deniedNamespaces",
		"controller.replicas=two":                         "replicas",
		"controller.staleAfter=30":                        "staleAfter",
		"controller.goneAfter=never":                      "goneAfter",
		"controller.leaderElect=false":                    "replicas",
		"controller.concurrentServices=0":                 "concurrentServices",
		"controller.prefer=zone":                          "prefer",
		"controller.extraArgs={namespace}":                "extraArgs",
		"controller.resources.cpu=1":                      "resources",
		"metrics.port=80":                                 "port",
		"coredns.namespace=Kube":                          "namespace",
		"coredns.corefile=":                               "corefile",
		"coredns.existingServiceAccounts[0].name=coredns": "namespace",
		"policies.serviceImport=true":                     "policies",
		"enabled=perhaps":                                 "enabled",
		"podSecurityContext=none":                         "podSecurityContext",
		"securityContexts.privileged=true":                "securityContexts",
	} {
		output, err := try(t.Context(), t, "", helm(t), "template", "x", chart, "--set", set)
		if err == nil {
			t.Errorf("--set %s passes:\n%s", set, output)
		} else if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "schema") {
			t.Errorf("--set %s: %v, want it to name %s of the schema", set, err, want)
		}
	}
}

// TestWhatValuesDo renders the chart with values, and looks for what they must change.
func TestWhatValuesDo(t *testing.T) {
	for _, test := range []struct{ set, contains, lacks string }{
		{"clusterId=east", "- --cluster-id=east\n", ""},
		{"clusterId=east.registry", "- --cluster-id=east.registry\n", ""},
		{"clusterId=", "", "--cluster-id"},
		{"image.registry=example.org/mirror/", `image: "example.org/mirror/clusterset-dns/clusterset-controller:0.1.0"`, ""},
		{"image.tag=sha256:abc", `image: "clusterset-dns/clusterset-controller@sha256:abc"`, ""},
		{"image.pullSecrets={one}", "imagePullSecrets:\n        - name: one\n", ""},
		{"crds.install=false", "", "kind: CustomResourceDefinition"},
		{"crds.keep=false", "kind: CustomResourceDefinition", "helm.sh/resource-policy"},
		{"crds.keep=true", "helm.sh/resource-policy: keep", ""},
		{"namespace.create=true", "kind: Namespace", ""},
		{"namespace.create=false", "", "kind: Namespace"},
		{"deniedNamespaces={kube-*,test-?[a-c]}", `matches("^(kube-.*|test-.[a-c])$")`, ""},
		{"deniedNamespaces={kube-*,test-?[a-c]}", "--denied-namespaces=kube-*,test-?[a-c]\n", ""},
		{"deniedNamespaces=null", "", "clusterset-denied-namespaces"},
		{"policies.deniedNamespaces=false", "--denied-namespaces=kube-*\n", "clusterset-denied-namespaces"},
		{"policies.serviceImports=false", "", "clusterset-serviceimports"},
		{"roles.viewer=false", "clusterset-aggregate-to-edit", "clusterset-viewer"},
		{"roles.aggregate=false", "clusterset-viewer", "clusterset-aggregate"},
		{"controller.replicas=1,controller.leaderElect=false", "type: Recreate", ""},
		{"controller.extraArgs={--context=a b}", `- "--context=a b"`, ""},
		{"controller.prefer=cluster", "- --prefer=cluster\n", ""},
		{"controller.podDisruptionBudget.enabled=false", "", "kind: PodDisruptionBudget"},
		{"controller.priorityClassName=", "", "priorityClassName"},
		{"clusterId=east", "priorityClassName: system-cluster-critical", ""},
		{"coredns.enabled=true", "securityContext:\n        runAsNonRoot: true\n        seccompProfile:", "runAsUser"}, // OpenShift assigns it
		{"podSecurityContext.runAsUser=1000650000", "runAsNonRoot: true\n        runAsUser: 1000650000\n", ""},
		{"securityContext.readOnlyRootFilesystem=false", "readOnlyRootFilesystem: false\n", "readOnlyRootFilesystem: true"},
		{"coredns.enabled=true,securityContext.capabilities=null", "capabilities:\n              add:\n              - NET_BIND_SERVICE\n", "drop:"},
		{"enabled=true,global.team=a", "kind: Deployment", ""},
		{"metrics.port=9090", "--bind-address=:9090", "8080"},
		{"metrics.service=false", "", "kind: Service\n"},
		{"coredns.enabled=false", "", "clusterset-coredns"},
		{"coredns.enabled=true,coredns.clusterIP=10.0.0.9", `clusterIP: "10.0.0.9"`, ""},
		{"coredns.enabled=true", "kind: ClusterRole\n", "net.gke.io"},
		{"coredns.enabled=true,coredns.readGKEImports=true", "  - apiGroups: [net.gke.io]\n", ""},
		{"coredns.existingServiceAccounts[0].name=coredns,coredns.existingServiceAccounts[0].namespace=kube-system", "    name: coredns\n    namespace: kube-system\n", "kind: ConfigMap"},
	} {
		args := []string{"--set", test.set}
		if test.set == "deniedNamespaces=null" {
			args = []string{"--set-json", "deniedNamespaces=[]"}
		}
		rendered := template(t, args...)
		if !strings.Contains(rendered, test.contains) {
			t.Errorf("--set %s: %q is missing in\n%s", test.set, test.contains, rendered)
		}
		if test.lacks != "" && strings.Contains(rendered, test.lacks) {
			t.Errorf("--set %s: %q is in\n%s", test.set, test.lacks, rendered)
		}
	}
}

// TestParentChartTurnsItOnAndOff renders a parent chart whose condition is the value enabled.
func TestParentChartTurnsItOnAndOff(t *testing.T) {
	parent := t.TempDir()
	write := func(name, text string) {
		must(t, os.WriteFile(filepath.Join(parent, name), []byte(text), 0o600))
	}
	write("Chart.yaml", `{apiVersion: v2, name: platform, version: 1.0.0, dependencies: [{name: clusterset-dns, version: "*", condition: clusterset-dns.enabled}]}`)
	write("values.yaml", `{global: {team: a}, clusterset-dns: {enabled: true, clusterId: east}}`)
	must(t, os.CopyFS(filepath.Join(parent, "charts", "clusterset-dns"), os.DirFS(chart)))
	on := run(t, "", helm(t), "template", "platform", parent, "--namespace", system)
	if !strings.Contains(on, "--cluster-id=east\n") {
		t.Errorf("turned on, it renders\n%s", on)
	}
	if off := run(t, "", helm(t), "template", "platform", parent, "--namespace", system, "--set", "clusterset-dns.enabled=false"); strings.Contains(off, "kind:") {
		t.Errorf("turned off, it renders\n%s", off)
	}
}

// TestPodsAreConfined looks at every container of the chart.
func TestPodsAreConfined(t *testing.T) {
	deployments := 0
	for _, object := range objects(t, template(t, "--set", "coredns.enabled=true")) {
		if object.GetKind() != "Deployment" {
			continue
		}
		deployments++
		var deployment appsv1.Deployment
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &deployment))
		name, pod := deployment.Name, deployment.Spec.Template.Spec
		if *deployment.Spec.Replicas != 2 {
			t.Errorf("%s has %d replicas", name, *deployment.Spec.Replicas)
		}
		// The images have a user that is not root, as another test sees.
		if c := pod.SecurityContext; !*c.RunAsNonRoot || c.RunAsUser != nil || c.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: pod security context %v", name, c)
		}
		// CoreDNS listens on port 53.
		var capabilities []corev1.Capability
		if name == "clusterset-coredns" {
			capabilities = []corev1.Capability{"NET_BIND_SERVICE"}
		}
		for _, container := range pod.Containers {
			c := container.SecurityContext
			if *c.AllowPrivilegeEscalation || !*c.ReadOnlyRootFilesystem || !slices.Equal(c.Capabilities.Drop, []corev1.Capability{"ALL"}) || !slices.Equal(c.Capabilities.Add, capabilities) {
				t.Errorf("%s: security context %v", name, c)
			}
			if container.Resources.Requests.Cpu().IsZero() || container.Resources.Requests.Memory().IsZero() || container.Resources.Limits.Memory().IsZero() {
				t.Errorf("%s: resources %v", name, container.Resources)
			}
			if container.LivenessProbe == nil || container.ReadinessProbe == nil {
				t.Errorf("%s has no probes", name)
			}
		}
	}
	if deployments != 2 {
		t.Errorf("%d Deployments, want 2", deployments)
	}
}

// TestDeniedNamespacesAreTheControllersOwn holds the chart's default against
// the one that the manual states.
func TestDeniedNamespacesAreTheControllersOwn(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| `--denied-namespaces` .* \\| `([^`]*)` \\|$").FindStringSubmatch(read(t, root+"/docs/reference/controller-flags.md"))
	if row == nil {
		t.Fatal("the manual does not say which namespaces are denied")
	}
	if want := "--denied-namespaces=" + row[1]; !slices.Contains(arguments(t, template(t), "clusterset-controller"), want) {
		t.Errorf("the chart does not run the controller with %s", want)
	}
}

// arguments are those of the first container of a Deployment.
func arguments(t testing.TB, rendered, name string) []string {
	t.Helper()
	for _, object := range objects(t, rendered) {
		if object.GetKind() != "Deployment" || object.GetName() != name {
			continue
		}
		containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		must(t, err)
		args, _, err := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
		must(t, err)
		return args
	}
	t.Fatalf("no Deployment %s", name)
	return nil
}
