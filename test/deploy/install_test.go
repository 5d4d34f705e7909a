// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/kubelet"
)

// bare is a cluster without the Multi-Cluster Services API.
var bare = controlplanetest.Shared(controlplane.Options{Name: "bare", Zones: []string{"a", "b"}, WithoutCRDs: true})

// TestInstallUpgradeUninstall follows an operator with Helm 3. An uninstall keeps the exports unless told otherwise,
// and its remains do not stop the next installation. test/quickstart tests with Helm 4 that an uninstall leaves nothing
// else behind.
func TestInstallUpgradeUninstall(t *testing.T) {
	cluster := bare(t)[0]
	kubelet.Start(t, kubelet.Options{Cluster: cluster})
	admin, program := cluster.AdminKubeconfig(), kubectl(t)
	release := func(args ...string) {
		run(t, "", helm3(t), append(args, "--kubeconfig", admin, "--namespace", system, "--wait", "--timeout", "2m")...)
	}
	// Pod security is enforced: an unconfined pod would not start.
	ctl(t, cluster, "", "create", "namespace", system)
	ctl(t, cluster, "", "label", "namespace", system, "pod-security.kubernetes.io/enforce=restricted")
	release("install", "clusterset-dns", chart, "--set", "clusterId=east")
	export := `{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {name: web, namespace: default}}`
	eventually(t, "create a ServiceExport", func(ctx context.Context) error {
		_, err := try(ctx, t, export, program, "--kubeconfig", admin, "apply", "-f", "-")
		return err
	})

	release("upgrade", "clusterset-dns", chart, "--set",
		"clusterId=east,coredns.enabled=true,coredns.namespace="+system)
	deployment, err := cluster.Client().AppsV1().Deployments(system).Get(t.Context(), "clusterset-coredns",
		metav1.GetOptions{})
	if err != nil || deployment.Status.AvailableReplicas != 2 {
		t.Errorf("CoreDNS after the upgrade: %v, %v", deployment.Status, err)
	}

	release("uninstall", "clusterset-dns")
	ctl(t, cluster, "", "get", "-n", "default", "serviceexport", "web")
	release("install", "clusterset-dns", chart, "--set", "clusterId=east,crds.keep=false")
	ctl(t, cluster, "", "get", "-n", "default", "serviceexport", "web")
	release("uninstall", "clusterset-dns")
	eventually(t, "the end of the CRDs", func(ctx context.Context) error {
		left, err := try(ctx, t, "", program, "--kubeconfig", admin, "get", "customresourcedefinitions", "-o", "name")
		if strings.Contains(left, "multicluster") {
			return errors.New(left)
		}
		return err
	})
	ctl(t, cluster, "", "delete", "namespace", system)
}

// TestServerTakesAllValues sends the chart with values to a real API server as a dry run, to validate it. Other tests
// apply the manifests, and test/quickstart the chart with its defaults.
func TestServerTakesAllValues(t *testing.T) {
	cluster := bare(t)[0]
	ctl(t, cluster, "", "create", "namespace", system)
	defer ctl(t, cluster, "", "delete", "namespace", system)
	text := template(t, "--set", "clusterId=east,namespace.create=true,coredns.enabled=true,"+
		"coredns.clusterIP=10.96.0.99,imagePullSecrets[0].name=a,controller.nodeSelector.a=b,"+
		"controller.tolerations[0].operator=Exists,"+
		"controller.extraEnv[0].name=A,controller.extraVolumes[0].name=a,controller.extraVolumeMounts[0].name=a,"+
		"controller.extraVolumeMounts[0].mountPath=/a,"+
		"controller.podLabels.a=b,controller.serviceAccount.annotations.a=b,controller.updateStrategy.type=Recreate,"+
		"coredns.updateStrategy.type=Recreate,"+
		"coredns.service.type=LoadBalancer,coredns.service.loadBalancerClass=example.org/internal,"+
		"networkPolicy.enabled=true,networkPolicy.metricsFrom[0].podSelector.matchLabels.a=b,"+
		"networkPolicy.probesFrom[0].ipBlock.cidr=10.2.0.0/16,metrics.dashboard.enabled=true,"+
		"members[0].id=west,members[0].server=https://west,members[0].token=a,members[1].id=north,"+
		"members[1].server=https://north,members[1].tokenFile=/a,members[1].accept={shop}")
	// The address must be in the cluster's range.
	text = strings.ReplaceAll(text, "10.96.0.99", cluster.ServiceIP(3))
	output := ctl(t, cluster, text, "apply", "--dry-run=server", "--validate=strict", "-f", "-")
	if count := strings.Count(output, "(server dry run)"); count != len(objects(t, text)) {
		t.Errorf("%d objects were taken of %d:\n%s", count, len(objects(t, text)), output)
	}
}
