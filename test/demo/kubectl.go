// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
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

// kubectl prints what one would type, makes the same requests, and prints what kubectl would say. It needs no kubectl.
type kubectl struct {
	narrator
	config string // path of a kubeconfig with all clusters
	bin    string // the folder of the programs
}

func (k kubectl) say(c *cluster, format string, args ...any) {
	k.command("kubectl --context " + c.name + " " + fmt.Sprintf(format, args...))
}

// apply applies files of the checkout, in whose root the demo runs.
func (k kubectl) apply(ctx context.Context, c *cluster, files ...string) error {
	k.say(c, "apply --server-side -f %s", strings.Join(files, " -f "))
	for _, file := range files {
		stream, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("the demo runs in the root of the checkout: %w", err)
		}
		objects, err := clusterset.Objects(stream)
		if err == nil {
			err = clusterset.Apply(ctx, c.plane, stream)
		}
		if err != nil {
			return err
		}
		for _, each := range objects {
			kind := each.GroupVersionKind().GroupKind()
			k.output(strings.ToLower(kind.String()) + "/" + each.GetName() + " serverside-applied\n")
		}
	}
	return nil
}

// confine sets the ranges of the pods of another cluster.
func (k kubectl) confine(ctx context.Context, c *cluster, other, ranges string) error {
	k.say(c, "-n %s annotate --overwrite secret %s %s=%s", clusterset.Namespace, clusterset.SecretOf(other), member.CIDRsAnnotation, ranges)
	_, err := c.kube.CoreV1().Secrets(clusterset.Namespace).Patch(ctx, clusterset.SecretOf(other), types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, member.CIDRsAnnotation, ranges), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("annotate the Secret of %s in %s: %w", other, c.name, err)
	}
	k.output("secret/" + clusterset.SecretOf(other) + " annotated")
	return nil
}

// scaleToZero takes all pods from the workloads of the demo.
func (k kubectl) scaleToZero(ctx context.Context, c *cluster) error {
	k.say(c, "-n %s scale deployment/web statefulset/db --replicas=0", namespace)
	none := []byte(`{"spec":{"replicas":0}}`)
	_, err1 := c.kube.AppsV1().Deployments(namespace).Patch(ctx, "web", types.MergePatchType, none,
		metav1.PatchOptions{}, "scale")
	_, err2 := c.kube.AppsV1().StatefulSets(namespace).Patch(ctx, "db", types.MergePatchType, none,
		metav1.PatchOptions{}, "scale")
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("scale the workloads of %s: %w", c.name, err)
	}
	k.output("deployment.apps/web scaled\nstatefulset.apps/db scaled\n")
	return nil
}

// plugin runs kubectl clusterset, and returns what it printed.
func (k kubectl) plugin(ctx context.Context, args ...string) (text string, _ error) {
	k.command("kubectl clusterset " + strings.Join(args, " "))
	var out bytes.Buffer
	command := exec.CommandContext(ctx, filepath.Join(k.bin, "kubectl-clusterset"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+k.config)
	command.Stdout, command.Stderr = &out, &out
	err := process.StartTied(command)
	if err == nil {
		err = command.Wait()
	}
	k.output(out.String())
	if err != nil {
		return "", fmt.Errorf("kubectl clusterset %s: %w", strings.Join(args, " "), err)
	}
	return out.String(), nil
}
