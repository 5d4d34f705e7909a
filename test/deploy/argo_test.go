// SPDX-License-Identifier: Apache-2.0

//go:build argo

package deploy

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/kubelet"
)

// TestArgoRollouts follows docs/use/beside-others.md with the real controller of Argo Rollouts: a Rollout in west moves
// its traffic away, replaces all pods, and returns the traffic in steps. The test ends each pause after its checks.
// ARGO_ROLLOUTS is a folder with the source and the program rollouts-controller.
func TestArgoRollouts(t *testing.T) {
	const namespace = "demo"
	source := os.Getenv("ARGO_ROLLOUTS")
	analysis := documented(t, "use/beside-others.md", "kind: AnalysisTemplate")
	strategy := regexp.MustCompile(`pause: {[^}]*}`).ReplaceAllString(documented(t, "use/beside-others.md", "strategy:\n"), "pause: {}")

	clusters := controlplanetest.Start(t, controlplane.Options{Name: "east", Zones: []string{"a"}}, controlplane.Options{Name: "west", Zones: []string{"b"}})
	east, west := clusters[0], clusters[1]
	folder := t.TempDir() // for the Secret of the Job
	for _, c := range clusters {
		kubelet.Start(t, kubelet.Options{Cluster: c})
		apply(t, c, template(t, "--set", "clusterId="+c.Name()+",namespace.create=true"))
		controllerOf(t, c)
		apply(t, c, `
{apiVersion: v1, kind: Namespace, metadata: {name: demo}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: rollout, namespace: demo}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: rollout, namespace: demo}
rules: [{apiGroups: [multicluster.x-k8s.io], resources: [serviceexports], resourceNames: [web], verbs: [get, patch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: rollout, namespace: demo}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: rollout}
subjects: [{kind: ServiceAccount, name: rollout, namespace: demo}]
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: demo}, spec: {selector: {app: web}, ports: [{port: 80}]}}
---
{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {name: web, namespace: demo}}
`)
		config, err := c.ServiceAccountKubeconfig(t.Context(), namespace, "rollout")
		must(t, err)
		must(t, os.WriteFile(filepath.Join(folder, c.Name()), config, 0o600))
	}
	shellOf(t, clusters...)("kubectl clusterset join east west")
	const pods = `
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
`
	apply(t, east, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: demo}\nspec:"+pods)

	crds, err := filepath.Glob(source + "/manifests/crds/*-crd.yaml")
	must(t, err)
	for _, file := range crds {
		apply(t, west, read(t, file))
	}
	logs := t.TempDir()
	background(t, logs, filepath.Join(source, "rollouts-controller"), "--kubeconfig", west.AdminKubeconfig(),
		"--leader-elect=false", "--metricsPort", fmt.Sprint(free(t).Port()), "--healthzPort", fmt.Sprint(free(t).Port()))
	playJobs(t, west, folder)
	apply(t, west, analysis)
	apply(t, west, "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: web, namespace: demo}\nspec:"+pods+
		"  "+strings.ReplaceAll(strings.TrimSpace(strategy), "\n", "\n  ")+"\n")

	rollouts := west.Dynamic().Resource(schema.GroupVersionResource{
		Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts",
	}).Namespace(namespace)
	// expect waits for the phase of the Rollout, the ready endpoints of each cluster as clients see them, and the pods of west.
	expect := func(what, phase string, wantEast, wantWest int, image string) {
		want := fmt.Sprintf("%s, east %d, west %d, in both, and 3 pods of %s", phase, wantEast, wantWest, image)
		took := eventually(t, what, func(ctx context.Context) error {
			rollout, err := rollouts.Get(ctx, "web", metav1.GetOptions{})
			if err != nil {
				return err
			}
			now, _, _ := unstructured.NestedString(rollout.Object, "status", "phase")
			list, err := west.Client().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
			if err != nil {
				return err
			}
			count := 0
			for _, pod := range list.Items {
				if pod.Spec.Containers[0].Image == image {
					count++
				}
			}
			for _, c := range clusters {
				endpoints, err := clusterset.Imported(ctx, c.Client(), namespace, "web")
				if err != nil {
					return err
				}
				ready := map[string]int{}
				for _, each := range endpoints {
					if cluster, _, _ := strings.Cut(each, "/"); strings.TrimRight(each, "~-") == each {
						ready[cluster]++
					}
				}
				if now != phase || ready["east"] != wantEast || ready["west"] != wantWest || count != 3 || len(list.Items) != 3 {
					return fmt.Errorf("%s, %v in %s, and %d of %d pods; want %s", now, ready, c.Name(), count, len(list.Items), want)
				}
			}
			return nil
		})
		t.Logf("%s after %v: %s", what, took.Round(10*time.Millisecond), want)
	}
	promote := func() {
		_, err := rollouts.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"status":{"pauseConditions":null}}`),
			metav1.PatchOptions{}, "status")
		must(t, err)
	}
	expect("the first version", "Healthy", 3, 3, "web:1")
	_, err = rollouts.Patch(t.Context(), "web", types.JSONPatchType,
		[]byte(`[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "web:2"}]`), metav1.PatchOptions{})
	must(t, err)
	expect("the traffic is away", "Paused", 3, 0, "web:1")
	promote()
	expect("the pods are replaced", "Paused", 3, 1, "web:2")
	promote()
	expect("the traffic is back", "Healthy", 3, 3, "web:2")
}

// playJobs simulates the Job controller and a kubelet for containers that run kubectl, with files from a folder.
func playJobs(t *testing.T, cluster *controlplane.Cluster, folder string) {
	t.Helper()
	program := kubectl(t)
	run := func(job *batchv1.Job) {
		for _, container := range job.Spec.Template.Spec.Containers {
			args := make([]string, len(container.Args))
			for i, arg := range container.Args {
				for _, variable := range container.Env {
					arg = strings.ReplaceAll(arg, "$("+variable.Name+")", variable.Value)
				}
				args[i] = strings.ReplaceAll(arg, container.VolumeMounts[0].MountPath+"/", folder+"/")
			}
			if output, err := exec.Command(program, args...).CombinedOutput(); err != nil {
				t.Errorf("%s of %s: %v: %s", container.Name, job.Name, err, output)
			}
		}
		now, job := ptr.To(metav1.Now()), job.DeepCopy()
		job.Status = batchv1.JobStatus{StartTime: now, CompletionTime: now, Succeeded: 1}
		for _, condition := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
			job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
				Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: *now,
			})
		}
		if _, err := cluster.Client().BatchV1().Jobs(job.Namespace).UpdateStatus(t.Context(), job, metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
	}
	factory := informers.NewSharedInformerFactory(cluster.Client(), 0)
	_, err := factory.Batch().V1().Jobs().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { run(object.(*batchv1.Job)) },
	})
	must(t, err)
	factory.Start(t.Context().Done())
	t.Cleanup(factory.Shutdown)
}
