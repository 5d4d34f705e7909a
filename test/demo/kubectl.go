// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// createSecret gives a cluster the credential of another one.
func (k kubectl) createSecret(ctx context.Context, c *cluster, other string, credential clusterset.Credential) error {
	label := member.ClusterLabel + "=" + other
	k.say(c, "-n %s create secret generic %s --from-file=kubeconfig=%s", clusterset.Namespace, other, credential)
	kubeconfig, err := os.ReadFile(string(credential))
	if err != nil {
		return fmt.Errorf("read the credential for %s: %w", other, err)
	}
	secrets := c.kube.CoreV1().Secrets(clusterset.Namespace)
	if _, err := secrets.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: other}, Data: map[string][]byte{member.KubeconfigKey: kubeconfig},
	}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the Secret of %s in %s: %w", other, c.name, err)
	}
	k.output("secret/" + other + " created")
	k.say(c, "-n %s label secret %s %s", clusterset.Namespace, other, label)
	if _, err := secrets.Patch(ctx, other, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, member.ClusterLabel, other),
		metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("label the Secret of %s in %s: %w", other, c.name, err)
	}
	k.output("secret/" + other + " labeled")
	// The canary of the demo is at an address of this machine.
	k.say(c, "-n %s annotate secret %s %s=0.0.0.0/0", clusterset.Namespace, other, member.CIDRsAnnotation)
	if _, err := secrets.Patch(ctx, other, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"0.0.0.0/0"}}}`, member.CIDRsAnnotation),
		metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("annotate the Secret of %s in %s: %w", other, c.name, err)
	}
	k.output("secret/" + other + " annotated")
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

// deleteExports withdraws exports.
func (k kubectl) deleteExports(ctx context.Context, c *cluster, names ...string) error {
	k.say(c, "-n %s delete serviceexports %s", namespace, strings.Join(names, " "))
	for _, name := range names {
		if err := c.mcs.MulticlusterV1beta1().ServiceExports(namespace).Delete(ctx, name,
			metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("delete ServiceExport %s/%s in %s: %w", namespace, name, c.name, err)
		}
		k.output(fmt.Sprintf("serviceexport.multicluster.x-k8s.io %q deleted from %s namespace\n", name, namespace))
	}
	return nil
}

// get prints the table that the API server makes of the objects of a resource, of all or of those with a label. A label
// can be a further column.
func (k kubectl) get(ctx context.Context, c *cluster, resource, selector, column string) error {
	text := "-n " + namespace + " get " + resource
	if selector != "" {
		text += " -l " + selector
	}
	if column != "" {
		text += " -L " + column
	}
	k.say(c, "%s", text)
	version := schema.GroupVersion{Group: "multicluster.x-k8s.io", Version: "v1beta1"}
	if resource == "endpointslices" {
		version = schema.GroupVersion{Group: "discovery.k8s.io", Version: "v1"}
	}
	raw, err := c.kube.CoreV1().RESTClient().Get().
		AbsPath("/apis", version.Group, version.Version, "namespaces", namespace, resource).
		Param("labelSelector", selector).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(ctx).Raw()
	table := metav1.Table{}
	if err == nil {
		err = json.Unmarshal(raw, &table)
	}
	if err != nil {
		return fmt.Errorf("list the %s of %s: %w", resource, c.name, err)
	}
	printed, err := printTable(table, column)
	k.output(printed)
	return err
}

func printTable(table metav1.Table, column string) (string, error) {
	if len(table.Rows) == 0 {
		return "No resources found in " + namespace + " namespace.\n", nil
	}
	var text bytes.Buffer
	writer := tabwriter.NewWriter(&text, 6, 4, 3, ' ', 0)
	line := func(last string, cell func(i int) any) {
		var cells []string
		for i, each := range table.ColumnDefinitions {
			if each.Priority == 0 {
				cells = append(cells, strings.TrimSuffix(fmt.Sprint(cell(i)), "\n"))
			}
		}
		if column != "" {
			cells = append(cells, last)
		}
		fmt.Fprintln(writer, strings.Join(cells, "\t"))
	}
	line(strings.ToUpper(filepath.Base(column)), func(i int) any { return strings.ToUpper(table.ColumnDefinitions[i].Name) })
	for _, row := range table.Rows {
		object := metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(row.Object.Raw, &object); err != nil {
			return "", fmt.Errorf("decode the object of a row: %w", err)
		}
		line(object.Labels[column], func(i int) any { return row.Cells[i] })
	}
	err := writer.Flush()
	return text.String(), err
}

// plugin runs kubectl clusterset.
func (k kubectl) plugin(ctx context.Context, args ...string) error {
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
		return fmt.Errorf("kubectl clusterset %s: %w", strings.Join(args, " "), err)
	}
	return nil
}
