// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

// TestServerTakesAllValues sends the chart with values to a real API server as a dry run, to validate it, in a namespace
// that restricts pods. Other tests apply the manifests, and test/quickstart the chart with its defaults.
func TestServerTakesAllValues(t *testing.T) {
	cluster := controlplanetest.Start(t, controlplane.Options{Name: "bare", WithoutCRDs: true})[0]
	ctl(t, cluster, "", "create", "namespace", system, "--save-config")
	ctl(t, cluster, "", "label", "namespace", system, "pod-security.kubernetes.io/warn=restricted")
	text := template(t, "--set", "clusterId=east,namespace.create=true,coredns.enabled=true,"+
		"coredns.namespace="+system+",coredns.clusterIP=10.96.0.99,imagePullSecrets[0].name=a,controller.nodeSelector.a=b,"+
		"controller.tolerations[0].operator=Exists,"+
		"controller.extraEnv[0].name=A,controller.extraVolumes[0].name=a,controller.extraVolumeMounts[0].name=a,"+
		"controller.extraVolumeMounts[0].mountPath=/a,"+
		"controller.podLabels.a=b,controller.serviceAccount.annotations.a=b,controller.updateStrategy.type=Recreate,"+
		"coredns.updateStrategy.type=Recreate,"+
		"coredns.service.type=LoadBalancer,coredns.service.loadBalancerClass=example.org/internal,"+
		"networkPolicy.enabled=true,networkPolicy.metricsFrom[0].podSelector.matchLabels.a=b,"+
		"networkPolicy.probesFrom[0].ipBlock.cidr=10.2.0.0/16,metrics.dashboard.enabled=true,readers={a}")
	// The address must be in the cluster's range.
	text = strings.ReplaceAll(text, "10.96.0.99", cluster.ServiceIP(3))
	output := ctl(t, cluster, text, "apply", "--dry-run=server", "--validate=strict", "--warnings-as-errors", "-f", "-")
	if count := strings.Count(output, "(server dry run)"); count != len(objects(t, text)) {
		t.Errorf("%d objects were taken of %d:\n%s", count, len(objects(t, text)), output)
	}
}
