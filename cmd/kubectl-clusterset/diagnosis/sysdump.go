// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

const (
	// ours selects the objects of the chart, dnsPods the DNS servers in kube-system.
	ours, dnsPods = "app.kubernetes.io/name=clusterset-dns", "k8s-app in (kube-dns,node-local-dns)"
	// timeout bounds how long the clusters may take.
	timeout = 3 * time.Minute
	// Bounds of logs.
	tailLines, limitBytes, maxPods = 2000, 4 << 20, 20
)

// WriteSysdump writes what a bug report needs into an archive, a gzipped tar with one folder of the given name: the reports
// by their names, and a folder for each cluster. It collects no Secrets, and leaves out the environment of containers and
// the annotation of kubectl apply, which may have credentials. What cannot be read is named in a file errors.txt of the
// cluster; WriteSysdump returns how many such errors there are.
func WriteSysdump(ctx context.Context, out io.Writer, folder string, clusters []*cluster.Cluster, reports map[string]string) (failed int,
	err error,
) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	dumps := make([]dump, len(clusters))
	_ = cluster.Each(clusters, func(i int, c *cluster.Cluster) error {
		dumps[i] = dump{Cluster: c, files: map[string]string{}}
		dumps[i].collect(ctx)
		return nil
	})
	files := maps.Clone(reports)
	for _, d := range dumps {
		failed += len(d.errors)
		if len(d.errors) > 0 {
			d.files["errors.txt"] = strings.Join(d.errors, "\n") + "\n"
		}
		for name, text := range d.files {
			files[path.Join(url.QueryEscape(d.Context), name)] = text
		}
	}
	zipped := gzip.NewWriter(out)
	archive, now := tar.NewWriter(zipped), time.Now()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		err = errors.Join(err, archive.WriteHeader(&tar.Header{
			Name: path.Join(folder, name), Mode: 0o600, Size: int64(len(files[name])), ModTime: now, Format: tar.FormatPAX,
		}))
		_, written := io.WriteString(archive, files[name])
		err = errors.Join(err, written)
	}
	return failed, errors.Join(err, archive.Close(), zipped.Close())
}

// A dump has the files read from one cluster.
type dump struct {
	*cluster.Cluster
	files  map[string]string
	errors []string
}

// collect reads everything from a cluster that answers.
func (d *dump) collect(ctx context.Context) {
	version, err := d.MCSVersion(ctx)
	if d.fail("API server", err); err != nil && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
		return // it does not answer
	}
	mcs := "." + cmp.Or(version, "v1beta1") + ".multicluster.x-k8s.io"
	const system = metav1.NamespaceSystem
	for _, row := range []struct{ resource, namespace, labels, fields string }{
		{"serviceexports" + mcs, "", "", ""},
		{"serviceimports" + mcs, "", "", ""},
		{"services.v1.", "", cluster.ServiceLabel, ""},
		{"endpointslices.v1.discovery.k8s.io", "", cluster.ServiceLabel, ""},
		{"nodes.v1.", "", "", ""},
		{"leases.v1.coordination.k8s.io", d.Namespace, "", ""},
		{"events.v1.", d.Namespace, "", ""},
		{"pods.v1.", "", ours, ""},
		{"pods.v1.", system, dnsPods, ""},
		{"deployments.v1.apps", "", ours, ""},
		{"deployments.v1.apps", system, dnsPods, ""},
		{"daemonsets.v1.apps", system, dnsPods, ""},
		{"configmaps.v1.", "", "", "metadata.name=clusterset-coredns"},
		{"configmaps.v1.", system, "", "metadata.name=coredns"},
		{"configmaps.v1.", system, "", "metadata.name=coredns-custom"},
		{"configmaps.v1.", system, "", "metadata.name=kube-dns"},
		{"configmaps.v1.", system, "", "metadata.name=node-local-dns"},
		{"configmaps.v1.", system, "", "metadata.name=nodelocaldns"}, // of Kubespray
	} {
		options := metav1.ListOptions{LabelSelector: row.labels, FieldSelector: row.fields}
		resource, _ := schema.ParseResourceArg(row.resource)
		list, err := d.Dynamic.Resource(*resource).Namespace(row.namespace).List(ctx, options)
		if d.fail(resource.Resource, err); err != nil {
			continue
		}
		for i := range list.Items {
			trim(list.Items[i].Object)
			text, err := yaml.Marshal(list.Items[i].Object)
			d.fail(resource.Resource, err)
			d.files[resource.Resource+".yaml"] += "---\n" + string(text)
		}
	}
	d.pods(ctx, metav1.NamespaceAll, ours)
	d.pods(ctx, system, dnsPods)
}

// fail records a failure to read something. An object that does not exist is no failure.
func (d *dump) fail(what string, err error) {
	if err != nil && !apierrors.IsNotFound(err) {
		d.errors = append(d.errors, what+": "+strings.TrimSpace(err.Error()))
	}
}

// trimmed are fields that may have credentials, or are long and of no use.
var trimmed = []string{"env", "envFrom", corev1.LastAppliedConfigAnnotation, "managedFields", "images"}

// trim removes fields at any depth. A label or a key of a ConfigMap may have such a name, but its value is a text.
func trim(value any) {
	switch value := value.(type) {
	case map[string]any:
		maps.DeleteFunc(value, func(key string, each any) bool {
			_, text := each.(string)
			return slices.Contains(trimmed, key) && (!text || key == corev1.LastAppliedConfigAnnotation)
		})
		for _, each := range value {
			trim(each)
		}
	case []any:
		for _, each := range value {
			trim(each)
		}
	}
}

// pods reads the end of the logs of pods, including the container before a restart, and their metrics.
func (d *dump) pods(ctx context.Context, namespace, labels string) {
	list, err := d.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: labels, Limit: maxPods})
	if err == nil && list.Continue != "" {
		err = fmt.Errorf("only those of %d pods", maxPods)
	}
	d.fail("logs of "+labels, err)
	for _, pod := range list.Items {
		pods := d.Kube.CoreV1().Pods(pod.Namespace)
		read := func(what, file string, from rest.ResponseWrapper) {
			text, err := from.DoRaw(ctx)
			if d.fail(what+" of "+file, err); err == nil {
				d.files[file] = string(text)
			}
		}
		for _, status := range pod.Status.ContainerStatuses {
			options := &corev1.PodLogOptions{
				Container: status.Name, TailLines: ptr.To[int64](tailLines), LimitBytes: ptr.To[int64](limitBytes),
			}
			file := "logs/" + pod.Name + "/" + status.Name
			read("log", file+".log", pods.GetLogs(pod.Name, options))
			if status.RestartCount > 0 {
				options.Previous = true
				read("log", file+"-previous.log", pods.GetLogs(pod.Name, options))
			}
		}
		if port := cluster.PortOf(&pod, "metrics", 0); port > 0 {
			read("metrics", "metrics/"+pod.Name+".txt", pods.ProxyGet("http", pod.Name, fmt.Sprint(port), "metrics", nil))
		}
	}
}
