// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
	"github.com/clusterset-dns/clusterset-dns/test/pki"
)

// TestMembersFromValues reads what the chart renders of members as the controller does.
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
	if strings.Count(rendered, "secret\n") != 1 {
		t.Errorf("the token is not in one place:\n%s", rendered)
	}
	found := 0
	for _, object := range objects(t, rendered) {
		switch object.GetName() {
		case "member-west.example":
			found++
			text, _, _ := unstructured.NestedString(object.Object, "stringData", member.KubeconfigKey)
			credential, err := member.ParseKubeconfig([]byte(text))
			must(t, err)
			if c := credential.Config; c.Host != "https://west:6443" || c.BearerToken != "secret" || string(c.CAData) != ca ||
				credential.Namespace != system {
				t.Errorf("credential %v from\n%s", credential, text)
			}
			if object.GetLabels()[member.ClusterLabel] != "west.example" ||
				object.GetAnnotations()[member.RankAnnotation] != "5" {
				t.Errorf("metadata %v", object.Object["metadata"])
			}
		case "clusterset-members":
			found++
			text, _, _ := unstructured.NestedString(object.Object, "data", "north")
			text = strings.Replace(text, "/tokens/north", values, 1)
			path := filepath.Join(t.TempDir(), "north")
			must(t, os.WriteFile(path, []byte(text), 0o600))
			credential, err := member.LoadKubeconfig(path)
			must(t, err)
			if credential.Config.Host != "https://north" || credential.Config.BearerTokenFile != values ||
				credential.Namespace != system || credential.Annotations[member.CIDRsAnnotation] != "10.3.0.0/16" ||
				credential.Annotations[scope.AcceptAnnotation] != "shop,team-*/db" {
				t.Errorf("credential %v from\n%s", credential, text)
			}
		}
	}
	if found != 2 || !slices.Contains(arguments(t, rendered, "clusterset-controller"),
		"--member=north=/etc/clusterset-dns/members/north") {
		t.Errorf("%d objects in\n%s", found, rendered)
	}
}

// TestMonitoringObjects holds the rule and the dashboard against their files.
func TestMonitoringObjects(t *testing.T) {
	found := 0
	for _, object := range objects(t, template(t, "--set", "metrics.prometheusRule.enabled=true,"+
		"metrics.dashboard.enabled=true,metrics.dashboard.namespace=grafana")) {
		switch object.GetKind() + " " + object.GetName() {
		case "PrometheusRule clusterset-dns":
			found++
			if difference := cmp.Diff(any(parse(t, read(t, monitoring+"alerts.yaml"))),
				object.Object["spec"]); difference != "" {
				t.Error(difference)
			}
		case "ConfigMap clusterset-dns-dashboard":
			found++
			text, _, _ := unstructured.NestedString(object.Object, "data", "clusterset-dns.json")
			if text != read(t, monitoring+"dashboard.json") || object.GetNamespace() != "grafana" ||
				object.GetLabels()["grafana_dashboard"] != "1" {
				t.Errorf("dashboard %v", object.Object)
			}
		}
	}
	if found != 2 {
		t.Errorf("%d objects, want 2", found)
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
		if c := pod.SecurityContext; !*c.RunAsNonRoot || c.RunAsUser != nil ||
			c.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: pod security context %v", name, c)
		}
		// CoreDNS listens on port 53.
		var capabilities []corev1.Capability
		if name == "clusterset-coredns" {
			capabilities = []corev1.Capability{"NET_BIND_SERVICE"}
		}
		for _, container := range pod.Containers {
			c := container.SecurityContext
			if *c.AllowPrivilegeEscalation || !*c.ReadOnlyRootFilesystem ||
				!slices.Equal(c.Capabilities.Drop, []corev1.Capability{"ALL"}) ||
				!slices.Equal(c.Capabilities.Add, capabilities) {
				t.Errorf("%s: security context %v", name, c)
			}
			if container.Resources.Requests.Cpu().IsZero() || container.Resources.Requests.Memory().IsZero() ||
				container.Resources.Limits.Memory().IsZero() {
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

// TestDeniedNamespacesAreTheControllersOwn holds the chart's default against the controller's.
func TestDeniedNamespacesAreTheControllersOwn(t *testing.T) {
	want := "--denied-namespaces=" + strings.Join(controller.DefaultDeniedNamespaces, ",")
	if !slices.Contains(arguments(t, template(t), "clusterset-controller"), want) {
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
