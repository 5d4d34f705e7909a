// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

// bare is a cluster without the Multi-Cluster Services API.
var bare = controlplanetest.Shared(controlplane.Options{Name: "bare", CRDs: controlplane.CRDsNone})

// TestInstallUpgradeUninstall does with helm what an operator does, and looks
// what is left.
func TestInstallUpgradeUninstall(t *testing.T) {
	cluster := bare(t)[0]
	before := inventory(t, cluster)
	admin := kubeconfig(t, cluster)
	do := func(args ...string) string {
		return run(t, "", helm(t), append(args, "--kubeconfig", admin, "--namespace", system)...)
	}

	// Pod security is enforced: a pod that is not confined would not start.
	run(t, "", kubectl(t), "--kubeconfig", admin, "create", "namespace", system)
	run(t, "", kubectl(t), "--kubeconfig", admin, "label", "namespace", system, "pod-security.kubernetes.io/enforce=restricted")
	notes := do("install", "clusterset-dns", chart, "--set", "clusterId=east", "--wait", "--timeout", "2m")
	for _, want := range []string{"as cluster east", "kubectl clusterset join", "rollout status deployment/clusterset-controller"} {
		if !strings.Contains(notes, want) {
			t.Errorf("%q is not in the notes:\n%s", want, notes)
		}
	}
	run(t, "", kubectl(t), "--kubeconfig", admin, "-n", system, "rollout", "status", "deployment/clusterset-controller", "--timeout", "1m")
	run(t, "", kubectl(t), "--kubeconfig", admin, "get", "serviceexports,serviceimports", "--all-namespaces")

	do("upgrade", "clusterset-dns", chart, "--set", "clusterId=east,coredns.enabled=true,coredns.namespace="+system+",crds.keep=false", "--wait", "--timeout", "2m")
	deployment, err := cluster.Client().AppsV1().Deployments(system).Get(t.Context(), "clusterset-coredns", metav1.GetOptions{})
	if err != nil || deployment.Status.AvailableReplicas != 2 {
		t.Errorf("CoreDNS after the upgrade: %v, %v", deployment.Status, err)
	}

	do("uninstall", "clusterset-dns", "--wait", "--timeout", "2m")
	run(t, "", kubectl(t), "--kubeconfig", admin, "delete", "namespace", system)
	expectInventory(t, cluster, before)
}

// TestUninstallKeepsTheCRDs looks that an uninstall does not take the exports
// with it, and that what was left does not stop the next installation.
func TestUninstallKeepsTheCRDs(t *testing.T) {
	cluster := bare(t)[0]
	before := inventory(t, cluster)
	admin := kubeconfig(t, cluster)
	do := func(args ...string) string {
		return run(t, "", helm(t), append(args, "--kubeconfig", admin, "--namespace", system)...)
	}
	export := `{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {name: web, namespace: default}}`
	do("install", "clusterset-dns", chart, "--create-namespace", "--set", "clusterId=east")
	eventually(t, "create a ServiceExport", func(ctx context.Context) error {
		_, err := try(ctx, t, export, kubectl(t), "--kubeconfig", admin, "apply", "-f", "-")
		return err
	})
	do("uninstall", "clusterset-dns", "--wait")
	run(t, "", kubectl(t), "--kubeconfig", admin, "get", "-n", "default", "serviceexport", "web")
	do("install", "clusterset-dns", chart, "--set", "clusterId=east,crds.keep=false")
	run(t, "", kubectl(t), "--kubeconfig", admin, "get", "-n", "default", "serviceexport", "web")
	do("uninstall", "clusterset-dns", "--wait")
	run(t, "", kubectl(t), "--kubeconfig", admin, "delete", "namespace", system)
	expectInventory(t, cluster, before)
}

// TestServerTakesTheManifests gives all that can be rendered to a real API
// server, which checks it against its schemas and writes nothing.
func TestServerTakesTheManifests(t *testing.T) {
	cluster := bare(t)[0]
	admin := kubeconfig(t, cluster)
	run(t, "", kubectl(t), "--kubeconfig", admin, "create", "namespace", system)
	defer run(t, "", kubectl(t), "--kubeconfig", admin, "delete", "namespace", system)
	texts := map[string]string{
		"the chart":             template(t),
		"the chart with values": template(t, "--set", "clusterId=east,namespace.create=true,coredns.enabled=true,coredns.clusterIP=10.96.0.99,image.pullSecrets={a},controller.nodeSelector.a=b,controller.tolerations[0].operator=Exists"),
	}
	for _, file := range []string{"manifest.yaml", "rbac.yaml", "coredns-rbac.yaml"} {
		texts[file] = read(t, root+"/deploy/"+file)
	}
	for name, text := range texts {
		// The address must be one of the cluster's range.
		text = strings.ReplaceAll(text, "10.96.0.99", cluster.Options().ServiceCIDRs[0].Addr().Next().Next().Next().String())
		output, err := try(t.Context(), t, text, kubectl(t), "--kubeconfig", admin, "apply", "--dry-run=server", "--validate=strict", "-f", "-")
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if count := strings.Count(output, "(server dry run)"); count != len(objects(t, text)) {
			t.Errorf("%s: %d objects were taken of %d:\n%s", name, count, len(objects(t, text)), output)
		}
	}
}

// inventory is every object of a cluster but those that come and go by themselves, once it has what Kubernetes' controllers put into each
// namespace, which do so after others may use the cluster.
func inventory(t testing.TB, cluster *controlplane.Cluster) []string {
	t.Helper()
	var found []string
	eventually(t, "what each namespace has", func(ctx context.Context) error {
		var err error
		if found, err = list(ctx, cluster); err != nil {
			return err
		}
		for _, object := range found {
			kind, name, _ := strings.Cut(object, " ")
			if kind != "/Namespace" {
				continue
			}
			namespace := strings.TrimPrefix(name, "/")
			for _, own := range []string{"/ConfigMap " + namespace + "/kube-root-ca.crt", "/ServiceAccount " + namespace + "/default"} {
				if !slices.Contains(found, own) {
					return fmt.Errorf("there is no %s", own)
				}
			}
		}
		return nil
	})
	return found
}

func list(ctx context.Context, cluster *controlplane.Cluster) ([]string, error) {
	resources, err := cluster.Client().Discovery().ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	all := map[string]bool{}
	for _, group := range resources {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range group.APIResources {
			if !slices.Contains(resource.Verbs, "list") || slices.Contains([]string{"Event", "Lease", "ComponentStatus"}, resource.Kind) {
				continue
			}
			objects, err := cluster.Dynamic().Resource(version.WithResource(resource.Name)).List(ctx, metav1.ListOptions{})
			if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
				continue // a CRD that goes
			}
			if err != nil {
				return nil, err
			}
			for _, object := range objects.Items {
				all[fmt.Sprintf("%s/%s %s/%s", version.Group, resource.Kind, object.GetNamespace(), object.GetName())] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all)), nil
}

func expectInventory(t testing.TB, cluster *controlplane.Cluster, want []string) {
	t.Helper()
	eventually(t, "nothing is left", func(ctx context.Context) error {
		got, err := list(ctx, cluster)
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(slices.Clone(got), func(object string) bool { return slices.Contains(want, object) })
		lost := slices.DeleteFunc(slices.Clone(want), func(object string) bool { return slices.Contains(got, object) })
		if len(left)+len(lost) > 0 {
			return fmt.Errorf("left are %q, lost are %q", left, lost)
		}
		return nil
	})
}
