// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/controller"
)

// TestValuesThatAreRefused renders the chart with values that its schema must reject, and with installations that cannot work.
func TestValuesThatAreRefused(t *testing.T) {
	for set, want := range map[string]string{
		"clusterID=east":                                  "clusterID",
		"clusterId=East":                                  "clusterId",
		"clusterId=a.b.c":                                 "clusterId",
		"clusterId=" + strings.Repeat("a", 64):            "clusterId",
		"image.tag=latest":                                "image",
		"controller.image.tag=sha256:abc":                 "tag",
		"coredns.image.digest=latest":                     "digest",
		"metrics.port=8082":                               "port",
		"deniedNamespaces={kube-*|demo}":                  "deniedNamespaces",
		"deniedNamespaces={Kube}":                         "deniedNamespaces",
		"controller.staleAfter=30":                        "staleAfter",
		"controller.leaderElect=false":                    "replicas",
		"controller.extraArgs={namespace}":                "extraArgs",
		"controller.resources.cpu=1":                      "resources",
		"metrics.port=80":                                 "port",
		"coredns.namespace=Kube":                          "namespace",
		"coredns.corefile=":                               "corefile",
		"coredns.existingServiceAccounts[0].name=coredns": "namespace",
		"policies.import=true":                            "policies",
		"coredns.service.type=ExternalName":               "type",
		"metrics.serviceMonitor.enabled=true,metrics.service.enabled=false": "service",
		// The API servers of all kubeadm clusters accept this audience, even the local one.
		"memberTokens.west=https://kubernetes.default.svc.cluster.local": "west",
		"networkPolicy.apiServerPorts={https}":                           "apiServerPorts",
		// The templates refuse these, and name the value to set.
		"image.registry=a":                          "clusterId is required: set the id of this cluster",
		"clusterId=east,networkPolicy.enabled=true": "networkPolicy.probesFrom is required",
	} {
		output, err := try(t.Context(), t, "", helm(t), "template", "x", chart, "--set", set)
		if err == nil {
			t.Errorf("--set %s passes:\n%s", set, output)
		} else if bySchema := strings.Contains(err.Error(), "schema"); !strings.Contains(err.Error(), want) ||
			bySchema == strings.Contains(want, " is required") {
			t.Errorf("--set %s: %v, want it to name %s", set, err, want)
		}
	}
}

// digest is the digest of an image, and policy has the values that NetworkPolicies need.
const (
	digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	policy = "networkPolicy.enabled=true,networkPolicy.probesFrom[0].ipBlock.cidr=10.2.0.0/16"
)

// TestWhatValuesDo renders the chart with values, and checks their effect. TestManifestsAreCurrent covers the defaults.
func TestWhatValuesDo(t *testing.T) {
	for _, test := range []struct{ set, contains, lacks string }{
		{"clusterId=east", "- --denied-namespaces=" + strings.Join(controller.DefaultOptions().DeniedNamespaces, ",") + "\n", ""},
		{"clusterId=east.registry", "- --cluster-id=east.registry\n", ""},
		{"image.registry=example.org/mirror/", `image: "example.org/mirror/clusterset-dns/clusterset-controller:0.1.0"`, ""},
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
		{"crds.keep=false", "kind: CustomResourceDefinition", "helm.sh/resource-policy: keep"},
		{"deniedNamespaces={kube-*,test-?[a-c]}", `matches("^(kube-.*|test-.[a-c])$")`, ""},
		{"deniedNamespaces={kube-*,test-?[a-c]}", "--denied-namespaces=kube-*,test-?[a-c]\n", ""},
		{"deniedNamespaces=null", "", "clusterset-denied-namespaces"},
		{"policies.deniedNamespaces=false", "--denied-namespaces=kube-*\n", "clusterset-denied-namespaces"},
		{"policies.imports=false", "", "clusterset-imports"},
		{"roles.viewer=false", "clusterset-aggregate-to-edit", "clusterset-viewer"},
		{"roles.aggregate=false", "clusterset-viewer", "clusterset-aggregate"},
		{"controller.extraArgs={--kubeconfig=a b}", `- "--kubeconfig=a b"`, ""},
		{"memberTokens.west=https://a", "- --member-tokens=/var/run/secrets/clusterset-dns/members\n", ""},
		{"memberTokens.west=https://a", "mountPath: /var/run/secrets/clusterset-dns/members\n", ""},
		{"memberTokens.west=https://a", "audience: \"https://a\"\n                  path: west\n", ""},
		{"controller.prefer=cluster", "- --prefer=cluster\n", ""},
		{"controller.podDisruptionBudget.enabled=false", "", "kind: PodDisruptionBudget"},
		{"controller.priorityClassName=", "", "priorityClassName"},
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
		{"controller.initContainers[0].name=a", "      initContainers:\n        - name: a\n      containers:\n", ""},
		{"controller.serviceAccount.annotations.a=b", "  annotations:\n    a: b\n", ""},
		{"coredns.enabled=true,coredns.updateStrategy.type=Recreate", "  strategy:\n    type: Recreate\n", "rollingUpdate"},
		{
			"coredns.enabled=true,coredns.service.type=LoadBalancer,coredns.service.annotations.a=b",
			"  annotations:\n    a: b\nspec:\n  type: LoadBalancer\n  trafficDistribution: PreferSameZone\n", "",
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
		{"policies.controller=false", "name: clusterset-imports\n", "by-the-controller"},
		{
			policy + ",networkPolicy.apiServerPorts={8443}", "        - {port: 8443, protocol: TCP}\n",
			"name: clusterset-coredns\n",
		},
		{"coredns.enabled=true", "", "kind: NetworkPolicy"},
		{"metrics.port=9090", "--bind-address=:9090", "8080"},
		{"probes.enabled=false", "", "probe"},
		{"controller.expose=NodePort", "  type: NodePort\n  externalTrafficPolicy: Local\n  selector:\n", "    resources: [pods]\n    verbs: [get]\n"},
		{"controller.expose=Gateway", "clusterset-probe-exposed\n", "externalTrafficPolicy"},
		{"controller.readPods=true", "    resources: [pods]\n    verbs: [get]\n", "resources: [pods, "},
		{"probes.port=9000", "--probe-address=:9000\n", "8081"},
		{"controller.replicas=1", "--probe-address=:8081\n", "preStop"},
		{"controller.leaderElect=false,controller.replicas=1", "  strategy:\n    type: Recreate\n", "preStop"},
		{policy, "    - from:\n        - ipBlock:\n            cidr: 10.2.0.0/16\n      ports:\n        - {port: probe, protocol: TCP}\n", "port: metrics, p"},
		{
			policy + ",networkPolicy.metricsFrom[0].podSelector.matchLabels.a=b",
			"              a: b\n      ports:\n        - {port: metrics, protocol: TCP}\n", "",
		},
		{"networkPolicy.enabled=true,probes.enabled=false", "        - {port: health, protocol: TCP}\n", "probe"},
		{policy + ",probes.port=9000", "        - {port: 9000, protocol: TCP}\n", ""},
		// Clusters of other networks are probed at node ports.
		{policy, "        - {port: 30000, endPort: 32767, protocol: TCP}\n", ""},
		{"coredns.enabled=true,coredns.clusterIP=10.0.0.9", `clusterIP: "10.0.0.9"`, ""},
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
