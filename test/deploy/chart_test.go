// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterset-dns/clusterset-dns/controller/accept"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/pki"
)

// TestValuesThatAreRefused gives the chart what its schema must not let pass.
func TestValuesThatAreRefused(t *testing.T) {
	for set, want := range map[string]string{
		"clusterID=east":                                  "clusterID",
		"clusterset=Blue":                                 "clusterset",
		"clusterId=East":                                  "clusterId",
		"clusterId=a.b.c":                                 "clusterId",
		"clusterId=" + strings.Repeat("a", 64):            "clusterId",
		"image.tag=latest":                                "image",
		"controller.image.tag=sha256:abc":                 "tag",
		"coredns.image.digest=latest":                     "digest",
		"metrics.port=8082":                               "port",
		"image.pullPolicy=Sometimes":                      "pullPolicy",
		"deniedNamespaces={kube-*|demo}":                  "deniedNamespaces",
		"deniedNamespaces={Kube}":                         "deniedNamespaces",
		"controller.replicas=two":                         "replicas",
		"controller.staleAfter=30":                        "staleAfter",
		"controller.goneAfter=never":                      "goneAfter",
		"controller.leaderElect=false":                    "replicas",
		"controller.prefer=1":                             "prefer",
		"controller.extraArgs={namespace}":                "extraArgs",
		"controller.resources.cpu=1":                      "resources",
		"metrics.port=80":                                 "port",
		"coredns.namespace=Kube":                          "namespace",
		"coredns.corefile=":                               "corefile",
		"coredns.existingServiceAccounts[0].name=coredns": "namespace",
		"policies.import=true":                            "policies",
		"enabled=perhaps":                                 "enabled",
		"podSecurityContext=none":                         "podSecurityContext",
		"securityContexts.privileged=true":                "securityContexts",
		"controller.extraEnv[0].value=a":                  "name",
		"controller.updateStrategy.type=OnDelete":         "type",
		"coredns.service.type=ExternalName":               "type",
		"members[0].id=west":                              "server",
		"metrics.serviceMonitor.interval=often":           "interval",
		"metrics.serviceMonitor.enabled=true,metrics.service.enabled=false":                            "service",
		"members[0].id=west,members[0].server=http://west,members[0].token=a":                          "server",
		"members[0].id=west,members[0].server=https://west":                                            "oneOf",
		"members[0].id=west,members[0].server=https://west,members[0].token=a,members[0].tokenFile=/a": "oneOf",
		// Every API server of kubeadm accepts it, also the local one.
		"members[0].id=west,members[0].server=https://west,members[0].audience=https://kubernetes.default.svc.cluster.local": "audience",
		"networkPolicy.apiServerPorts={https}": "apiServerPorts",
	} {
		output, err := try(t.Context(), t, "", helm(t), "template", "x", chart, "--set", set)
		if err == nil {
			t.Errorf("--set %s passes:\n%s", set, output)
		} else if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "schema") {
			t.Errorf("--set %s: %v, want it to name %s of the schema", set, err, want)
		}
	}
}

// digest is one of an image, and policy are values that NetworkPolicies need.
const (
	digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	policy = "networkPolicy.enabled=true,networkPolicy.canaryFrom[0].ipBlock.cidr=10.2.0.0/16"
)

// TestValuesThatAreMissing: an install that could not work fails, with what to set.
func TestValuesThatAreMissing(t *testing.T) {
	for set, want := range map[string]string{
		"image.registry=a":                          "clusterId is required: set the id of this cluster",
		"clusterId=east,networkPolicy.enabled=true": "networkPolicy.canaryFrom is required",
	} {
		if _, err := try(t.Context(), t, "", helm(t), "template", "x", chart, "--set", set); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("--set %s: %v, want %q", set, err, want)
		}
	}
}

// TestWhatValuesDo renders the chart with values, and looks for what they must change.
func TestWhatValuesDo(t *testing.T) {
	for _, test := range []struct{ set, contains, lacks string }{
		{"clusterId=east", "- --cluster-id=east\n", ""},
		{"clusterId=east.registry", "- --cluster-id=east.registry\n", ""},
		{"clusterId=fromClusterProperty", "", "--cluster-id"},
		{"clusterset=", "name: clusterset-controller\n", "--clusterset"},
		{"coredns.enabled=true,clusterset=", "", "        clusterset "},
		{"clusterset=", "operator: DoesNotExist", "matchLabels: {clusterset-dns"},
		{"clusterset=blue", "- --clusterset=blue\n", ""},
		{"clusterset=blue", "name: clusterset-member-blue\n", ""},
		{"clusterset=blue", "policyName: clusterset-imports-blue\n", ""},
		{"coredns.enabled=true,clusterset=blue", "        clusterset blue\n", ""},
		{"clusterset=blue", `matchLabels: {clusterset-dns.github.io/clusterset: "blue"}`, ""},
		{"image.registry=example.org/mirror/", `image: "example.org/mirror/clusterset-dns/clusterset-controller:0.1.0"`, ""},
		{"clusterId=east", `image: "ghcr.io/clusterset-dns/clusterset-controller:0.1.0"`, ""},
		{"coredns.enabled=true", `image: "ghcr.io/clusterset-dns/coredns-slim:0.1.0"`, "clusterset-dns/coredns:"},
		{"image.registry=", `image: "clusterset-dns/clusterset-controller:0.1.0"`, ""},
		{
			"controller.image.tag=v1,controller.image.digest=" + digest,
			`image: "ghcr.io/clusterset-dns/clusterset-controller@` + digest + `"`, ":v1",
		},
		{"coredns.enabled=true,coredns.image.digest=" + digest, `/clusterset-controller:0.1.0"`, "controller@"},
		{"coredns.enabled=true,coredns.image.digest=" + digest, `/coredns-slim@` + digest + `"`, "coredns-slim:"},
		{"imagePullSecrets[0].name=one", "imagePullSecrets:\n        - name: one\n", ""},
		{"coredns.enabled=true,coredns.replicas=null", "  name: clusterset-coredns\n", "spec:\n  replicas: 0"},
		{"crds.install=false", "", "kind: CustomResourceDefinition"},
		{"crds.keep=false", "kind: CustomResourceDefinition", "helm.sh/resource-policy"},
		{"crds.keep=true", "helm.sh/resource-policy: keep", ""},
		{"namespace.create=true", "kind: Namespace", ""},
		{"namespace.create=false", "", "kind: Namespace"},
		{"deniedNamespaces={kube-*,test-?[a-c]}", `matches("^(kube-.*|test-.[a-c])$")`, ""},
		{"deniedNamespaces={kube-*,test-?[a-c]}", "--denied-namespaces=kube-*,test-?[a-c]\n", ""},
		{"deniedNamespaces=null", "", "clusterset-denied-namespaces"},
		{"policies.deniedNamespaces=false", "--denied-namespaces=kube-*\n", "clusterset-denied-namespaces"},
		{"policies.imports=false", "", "clusterset-imports"},
		{"roles.viewer=false", "clusterset-aggregate-to-edit", "clusterset-viewer"},
		{"roles.aggregate=false", "clusterset-viewer", "clusterset-aggregate"},
		{"controller.replicas=1,controller.leaderElect=false", "type: Recreate", ""},
		{"controller.extraArgs={--kubeconfig=a b}", `- "--kubeconfig=a b"`, ""},
		{"controller.prefer=cluster", "- --prefer=cluster\n", ""},
		{"controller.podDisruptionBudget.enabled=false", "", "kind: PodDisruptionBudget"},
		{"controller.priorityClassName=", "", "priorityClassName"},
		{"clusterId=east", "priorityClassName: system-cluster-critical", ""},
		// OpenShift assigns it
		{"coredns.enabled=true", "securityContext:\n        runAsNonRoot: true\n        seccompProfile:", "runAsUser"},
		{"podSecurityContext.runAsUser=1000650000", "runAsNonRoot: true\n        runAsUser: 1000650000\n", ""},
		{"securityContext.readOnlyRootFilesystem=false", "readOnlyRootFilesystem: false\n", "readOnlyRootFilesystem: true"},
		{
			"coredns.enabled=true,securityContext.capabilities=null",
			"capabilities:\n              add:\n              - NET_BIND_SERVICE\n", "drop:",
		},
		{"enabled=true,global.team=a", "kind: Deployment", ""},
		{"commonLabels.team=a", "    helm.sh/chart: clusterset-dns-0.1.0\n    team: a\n", ""},
		{"commonLabels.app\\.kubernetes\\.io/name=a", "    app.kubernetes.io/name: clusterset-dns\n", "io/name: a\n"},
		{"controller.podLabels.team=a", "        team: a\n", "\n    team: a\n"},
		{"controller.affinity.podAffinity.a=b", "      affinity:\n        podAffinity:\n          a: b\n", ""},
		{"clusterId=east", "        - labelSelector:\n            matchLabels:\n              " +
			"app.kubernetes.io/component: controller\n              app.kubernetes.io/name: clusterset-dns\n          " +
			"maxSkew: 1\n          topologyKey: kubernetes.io/hostname\n", ""},
		{"controller.topologySpreadConstraints=null", "", "topologyKey"},
		{
			"controller.topologySpreadConstraints[0].labelSelector.matchLabels.a=b",
			"        - labelSelector:\n            matchLabels:\n              a: b\n", "topologyKey",
		},
		{
			"controller.extraEnv[0].name=HTTPS_PROXY,controller.extraEnv[0].value=a",
			"            - name: HTTPS_PROXY\n              value: a\n", "",
		},
		{
			"controller.extraVolumes[0].name=a,controller.extraVolumeMounts[0].name=a",
			"          volumeMounts:\n            - name: a\n      volumes:\n        - name: a\n", "",
		},
		{"clusterId=east", "", "volumes:"},
		{"controller.initContainers[0].name=a", "      initContainers:\n        - name: a\n      containers:\n", ""},
		{"controller.serviceAccount.annotations.a=b", "  annotations:\n    a: b\n", ""},
		{"controller.updateStrategy.type=Recreate", "  strategy:\n    type: Recreate\n", "rollingUpdate"},
		{"coredns.enabled=true,coredns.updateStrategy.type=Recreate", "  strategy:\n    type: Recreate\n", "rollingUpdate"},
		{
			"coredns.enabled=true,coredns.service.type=LoadBalancer,coredns.service.annotations.a=b",
			"  annotations:\n    a: b\nspec:\n  type: LoadBalancer\n  trafficDistribution: PreferClose\n", "",
		},
		{"coredns.enabled=true,metrics.service.enabled=false", "kind: Service\n", "-metrics\n"},
		{
			"metrics.serviceMonitor.enabled=true,metrics.serviceMonitor.labels.release=a",
			"    release: a\nspec:\n  selector:\n    matchLabels:\n      app.kubernetes.io/name: clusterset-dns\n      " +
				"app.kubernetes.io/component: controller\n  endpoints:\n    - port: metrics\n", "name: clusterset-coredns\n",
		},
		{
			"coredns.enabled=true,metrics.serviceMonitor.enabled=true",
			"kind: ServiceMonitor\nmetadata:\n  name: clusterset-coredns\n  namespace: kube-system\n", "",
		},
		{"clusterId=east", "", "monitoring.coreos.com"},
		{"policies.controller=false", "name: clusterset-imports\n", "by-the-controller"},
		{
			policy + ",networkPolicy.apiServerPorts={8443}", "        - {port: 8443, protocol: TCP}\n",
			"name: clusterset-coredns\n",
		},
		{"coredns.enabled=true", "", "kind: NetworkPolicy"},
		{"metrics.port=9090", "--bind-address=:9090", "8080"},
		{"metrics.service.enabled=false", "name: clusterset-canary\n", "-metrics\n"},
		{"metrics.service.enabled=false,canary.enabled=false", "", "kind: Service\n"},
		{"canary.enabled=false", "", "canary"},
		{"canary.port=9000", "--canary-address=:9000\n", "8081"},
		{"clusterId=east", "              sleep: {seconds: 10}\n", ""},
		{"controller.replicas=1", "--canary-address=:8081\n", "preStop"},
		{"controller.leaderElect=false,controller.replicas=1", "--canary-address=:8081\n", "preStop"},
		{policy, "    - from:\n        - ipBlock:\n            cidr: 10.2.0.0/16\n      ports:\n        - {port: canary, protocol: TCP}\n", "port: metrics, p"},
		{
			policy + ",networkPolicy.metricsFrom[0].podSelector.matchLabels.a=b",
			"              a: b\n      ports:\n        - {port: metrics, protocol: TCP}\n", "",
		},
		{"networkPolicy.enabled=true,canary.enabled=false", "        - {port: health, protocol: TCP}\n", "canary"},
		{policy + ",canary.port=9000", "        - {port: 9000, protocol: TCP}\n", ""},
		{"coredns.enabled=false", "", "clusterset-coredns"},
		{"coredns.enabled=true,coredns.clusterIP=10.0.0.9", `clusterIP: "10.0.0.9"`, ""},
		{"coredns.enabled=true", "kind: ClusterRole\n", "net.gke.io"},
		{"coredns.enabled=true,clusterId=east", "  Corefile: |\n    (multicluster-options) {\n        cluster east\n    }\n    clusterset.local:53 {\n", ""},
		{"coredns.enabled=true,coredns.readGKEImports=true", "  - apiGroups: [net.gke.io]\n", ""},
		{
			"coredns.existingServiceAccounts[0].name=coredns,coredns.existingServiceAccounts[0].namespace=kube-system",
			"    name: coredns\n    namespace: kube-system\n", "kind: ConfigMap",
		},
	} {
		args := []string{"--set", "coredns.enabled=false", "--set", test.set}
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

// TestBothHelmsRenderTheSame gives them values that most templates depend on.
func TestBothHelmsRenderTheSame(t *testing.T) {
	const values = "namespace.create=true,coredns.enabled=true,networkPolicy.enabled=true,networkPolicy.canaryFrom[0].podSelector.matchLabels.a=b," +
		"metrics.serviceMonitor.enabled=true,metrics.prometheusRule.enabled=true," +
		"metrics.dashboard.enabled=true,members[0].id=west,members[0].server=https://west,members[0].tokenFile=/token"
	byName := func(rendered string) map[string]any {
		all := map[string]any{}
		for _, object := range objects(t, rendered) {
			all[object.GetKind()+" "+object.GetName()] = object.Object
		}
		return all
	}
	// Helm 3, as built here, does not know which Kubernetes it is made for.
	flags := []string{"--kube-version", "1.36.0", "--set", values}
	four, three := byName(template(t, flags...)), byName(templateBy(t, helm3, flags...))
	if difference := cmp.Diff(four, three); difference != "" || len(four) < 20 {
		t.Errorf("%d objects; Helm 3 renders others (- Helm 4, + Helm 3):\n%s", len(four), difference)
	}
}

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
			credential, err := member.LoadKubeconfig(path, "", nil)
			must(t, err)
			if credential.Config.Host != "https://north" || credential.Config.BearerTokenFile != values ||
				credential.Namespace != system || credential.Annotations[member.CIDRsAnnotation] != "10.3.0.0/16" ||
				credential.Annotations[accept.Annotation] != "shop,team-*/db" {
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

// TestParentChartTurnsItOnAndOff renders a parent chart whose condition is the value enabled.
func TestParentChartTurnsItOnAndOff(t *testing.T) {
	parent := t.TempDir()
	write := func(name, text string) {
		must(t, os.WriteFile(filepath.Join(parent, name), []byte(text), 0o600))
	}
	write("Chart.yaml",
		`{apiVersion: v2, name: platform, version: 1.0.0, dependencies: [{name: clusterset-dns, version: "*", condition: clusterset-dns.enabled}]}`)
	write("values.yaml", `{global: {team: a}, clusterset-dns: {enabled: true, clusterId: east}}`)
	must(t, os.CopyFS(filepath.Join(parent, "charts", "clusterset-dns"), os.DirFS(chart)))
	on := run(t, "", helm(t), "template", "platform", parent, "--namespace", system)
	if !strings.Contains(on, "--cluster-id=east\n") {
		t.Errorf("turned on, it renders\n%s", on)
	}
	if off := run(t, "", helm(t), "template", "platform", parent, "--namespace", system, "--set",
		"clusterset-dns.enabled=false"); strings.Contains(off, "kind:") {
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

// TestDeniedNamespacesAreTheControllersOwn holds the chart's default against the one that the manual states.
func TestDeniedNamespacesAreTheControllersOwn(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| `--denied-namespaces` .* \\| `([^`]*)` \\|$").FindStringSubmatch(
		read(t, root+"/docs/reference/controller-flags.md"))
	if row == nil {
		t.Fatal("the manual does not say which namespaces are denied")
	}
	if want := "--denied-namespaces=" +
		row[1]; !slices.Contains(arguments(t, template(t), "clusterset-controller"), want) {
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
