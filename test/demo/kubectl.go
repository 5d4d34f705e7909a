// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// apply applies files of the checkout, in whose root the demo runs, and prints what kubectl would. No kubectl is needed.
func (s *story) apply(ctx context.Context, c *cluster, files ...string) {
	s.command("kubectl --context %s apply --server-side -f %s", c.name, strings.Join(files, " -f "))
	for _, file := range files {
		stream := get(os.ReadFile(file))
		must(clusterset.Apply(ctx, c.plane, stream))
		for _, each := range get(clusterset.Objects(stream)) {
			kind := each.GroupVersionKind().GroupKind()
			s.output(strings.ToLower(kind.String()) + "/" + each.GetName() + " serverside-applied")
		}
	}
}

// applyBoth applies one of the manifests in east and west.
func (s *story) applyBoth(ctx context.Context, manifest string) {
	for _, c := range s.clusters {
		s.apply(ctx, c, "test/demo/manifests/"+manifest)
	}
}

// confine sets the ranges of the pods of another cluster.
func (s *story) confine(ctx context.Context, c *cluster, other, ranges string) {
	name := clusterset.SecretOf(other)
	s.command("kubectl --context %s -n %s annotate --overwrite secret %s %s=%s", c.name, clusterset.Namespace, name,
		member.CIDRsAnnotation, ranges)
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, member.CIDRsAnnotation, ranges)
	get(c.kube.CoreV1().Secrets(clusterset.Namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}))
	s.output("secret/" + name + " annotated")
}

// scaleWorkloads takes all pods from the workloads of the demo.
func (s *story) scaleWorkloads(ctx context.Context, c *cluster) {
	s.command("kubectl --context %s -n %s scale deployment/web statefulset/db --replicas=0", c.name, namespace)
	none := []byte(`{"spec":{"replicas":0}}`)
	get(c.kube.AppsV1().Deployments(namespace).Patch(ctx, "web", types.MergePatchType, none, metav1.PatchOptions{}, "scale"))
	get(c.kube.AppsV1().StatefulSets(namespace).Patch(ctx, "db", types.MergePatchType, none, metav1.PatchOptions{}, "scale"))
	s.output("deployment.apps/web scaled\nstatefulset.apps/db scaled")
}

// plugin runs kubectl clusterset, and returns what it printed.
func (s *story) plugin(ctx context.Context, args ...string) string {
	s.command("kubectl clusterset %s", strings.Join(args, " "))
	var out bytes.Buffer
	command := exec.CommandContext(ctx, filepath.Join(s.bin, "kubectl-clusterset"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+s.config)
	command.Stdout, command.Stderr = &out, &out
	err := process.StartTied(command)
	if err == nil {
		err = command.Wait()
	}
	s.output(out.String())
	must(err)
	return out.String()
}
