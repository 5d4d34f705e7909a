// SPDX-License-Identifier: Apache-2.0

package sysdump

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/names"
)

const (
	// ours selects what the chart makes.
	ours = "app.kubernetes.io/name=clusterset-dns"
	// dnsPods selects the pods of the cluster's DNS and of NodeLocal DNSCache.
	dnsPods = "k8s-app in (kube-dns,node-local-dns)"
	// mcs is the path of the MCS API, without its version.
	mcs = "/apis/multicluster.x-k8s.io/"
)

// A dump is what was read of one cluster.
type dump struct {
	cluster *cluster.Cluster
	files   map[string]string
	errors  []string
}

// A query lists objects for a file, which may have several.
type query struct {
	file, path, labels, fields string
	// keep leaves out objects; nil keeps all.
	keep func(*unstructured.Unstructured) bool
}

// collect reads all of a cluster that answers.
func (d *dump) collect(ctx context.Context) {
	kubernetes, err := d.get(ctx, "/version", "", "")
	d.fail("API server", err)
	var status apierrors.APIStatus
	if err != nil && !errors.As(err, &status) {
		return // it does not answer
	}
	d.files["kubernetes.json"] = string(kubernetes)
	version, err := d.cluster.MCSVersion(ctx)
	d.fail("MCS API", err)
	exported := map[string]bool{}
	d.write(ctx, query{
		file: "serviceexports", path: mcs + version + "/serviceexports",
		keep: func(object *unstructured.Unstructured) bool {
			exported[object.GetNamespace()+"/"+object.GetName()] = true
			return true
		},
	})
	named := func(label string) func(*unstructured.Unstructured) bool {
		return func(object *unstructured.Unstructured) bool {
			name := object.GetName()
			if label != "" {
				name = object.GetLabels()[label]
			}
			return exported[object.GetNamespace()+"/"+name] || object.GetLabels()[names.SourceCluster] != "" ||
				names.IsManaged(object)
		}
	}
	system, dns := "/namespaces/"+d.cluster.Namespace, "/namespaces/"+metav1.NamespaceSystem
	about := func(prefixes ...string) func(*unstructured.Unstructured) bool {
		return func(object *unstructured.Unstructured) bool {
			name, _, _ := unstructured.NestedString(object.Object, "involvedObject", "name")
			return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		}
	}
	pods := []query{
		{file: "pods", path: "/api/v1/pods", labels: ours},
		{file: "pods", path: "/api/v1" + dns + "/pods", labels: dnsPods},
	}
	for _, q := range slices.Concat([]query{
		{file: "serviceimports", path: mcs + version + "/serviceimports"},
		{file: "services", path: "/api/v1/services", keep: named("")},
		{
			file: "endpointslices", path: "/apis/discovery.k8s.io/v1/endpointslices",
			keep: named(discoveryv1.LabelServiceName),
		},
		{file: "leases", path: "/apis/coordination.k8s.io/v1" + system + "/leases"},
		{file: "events", path: "/api/v1/events", fields: "source=clusterset-controller"},
		{file: "events-system", path: "/api/v1" + system + "/events"},
		{file: "events-dns", path: "/api/v1" + dns + "/events", keep: about("coredns", "node-local-dns", "clusterset-")},
		{file: "deployments", path: "/apis/apps/v1/deployments", labels: ours},
		{file: "deployments", path: "/apis/apps/v1" + dns + "/deployments", labels: "k8s-app=kube-dns"},
		{file: "daemonsets", path: "/apis/apps/v1" + dns + "/daemonsets", labels: dnsPods},
		{file: "configmaps", path: "/api/v1" + dns + "/configmaps", keep: d.configMap},
		{file: "clusterproperties", path: "/apis/about.k8s.io/v1beta1/clusterproperties"},
		{file: "clusterproperties", path: "/apis/about.k8s.io/v1alpha1/clusterproperties"},
		{file: "namespaces", path: "/api/v1/namespaces"},
		{file: "nodes", path: "/api/v1/nodes"},
		{file: "servicecidrs", path: "/apis/networking.k8s.io/v1/servicecidrs"},
		{
			file: "customresourcedefinitions", path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
			keep: func(object *unstructured.Unstructured) bool {
				return strings.HasSuffix(object.GetName(), ".multicluster.x-k8s.io") ||
					strings.HasSuffix(object.GetName(), ".about.k8s.io")
			},
		},
	}, pods) {
		d.write(ctx, q)
	}
	for _, q := range pods {
		d.logs(ctx, q)
	}
}

// fail notes what could not be read. What does not exist is no failure.
func (d *dump) fail(what string, err error) {
	if err != nil && !apierrors.IsNotFound(err) {
		d.errors = append(d.errors, what+": "+strings.TrimSpace(err.Error()))
	}
}

func (d *dump) get(ctx context.Context, path, labels, fields string) ([]byte, error) {
	request := d.cluster.Kube.CoreV1().RESTClient().Get().AbsPath(path)
	for name, value := range map[string]string{"labelSelector": labels, "fieldSelector": fields} {
		if value != "" {
			request = request.Param(name, value)
		}
	}
	return raw(request.Do(ctx))
}

// raw returns the body of an answer, or the error that it says.
func raw(result rest.Result) ([]byte, error) {
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// list reads the objects of a query.
func (d *dump) list(ctx context.Context, q query) ([]unstructured.Unstructured, error) {
	answer, err := d.get(ctx, q.path, q.labels, q.fields)
	if err != nil {
		return nil, err
	}
	var list struct {
		APIVersion, Kind string
		Items            []map[string]any
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return nil, err
	}
	var objects []unstructured.Unstructured
	for _, item := range list.Items {
		object := unstructured.Unstructured{Object: item}
		if item["kind"] == nil { // items of built-in lists have neither
			object.SetAPIVersion(list.APIVersion)
			object.SetKind(strings.TrimSuffix(list.Kind, "List"))
		}
		if q.keep == nil || q.keep(&object) {
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// write adds the objects of a query to its file.
func (d *dump) write(ctx context.Context, q query) {
	objects, err := d.list(ctx, q)
	d.fail(q.file, err)
	for i := range objects {
		trim(objects[i].Object)
		encoded, err := yaml.Marshal(objects[i].Object)
		d.fail(q.file, err)
		d.files[q.file+".yaml"] += "---\n" + string(encoded)
	}
}

// trim removes what is long and of no use, and what may have credentials.
func trim(object map[string]any) {
	unstructured.RemoveNestedField(object, "metadata", "managedFields")
	unstructured.RemoveNestedField(object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	if object["kind"] == "Node" {
		unstructured.RemoveNestedField(object, "status", "images")
	}
	if object["kind"] == "CustomResourceDefinition" {
		versions, _, _ := unstructured.NestedSlice(object, "spec", "versions")
		for _, version := range versions {
			if version, ok := version.(map[string]any); ok {
				delete(version, "schema")
			}
		}
		_ = unstructured.SetNestedSlice(object, versions, "spec", "versions") // as it was read
	}
	removeEnvironment(object)
}

// removeEnvironment removes the variables of all containers, at any depth.
func removeEnvironment(value map[string]any) {
	for key, each := range value {
		switch each := each.(type) {
		case map[string]any:
			removeEnvironment(each)
		case []any:
			for _, container := range each {
				if fields, ok := container.(map[string]any); ok && strings.HasSuffix(strings.ToLower(key), "containers") {
					delete(fields, "env")
					delete(fields, "envFrom")
				}
			}
		}
	}
}

// configMap writes each key of a ConfigMap of the cluster's DNS to a file.
func (d *dump) configMap(object *unstructured.Unstructured) bool {
	name := object.GetName()
	if !slices.ContainsFunc([]string{"coredns", "kube-dns", "node-local-dns", "clusterset-coredns"},
		func(prefix string) bool { return strings.Contains(name, prefix) }) {
		return false
	}
	data, _, _ := unstructured.NestedStringMap(object.Object, "data")
	for key, text := range data {
		d.files["configmaps/"+name+"/"+key] = text
	}
	unstructured.RemoveNestedField(object.Object, "data")
	unstructured.RemoveNestedField(object.Object, "binaryData")
	return true
}

// Bounds of logs.
const (
	tailLines  = "2000"
	limitBytes = "4194304"
	maxPods    = 20
)

// logs reads the end of the logs of pods, also of the container before a
// restart, and their metrics.
func (d *dump) logs(ctx context.Context, q query) {
	objects, err := d.list(ctx, q)
	if err != nil {
		return // write has told
	}
	for i, object := range objects {
		if i == maxPods {
			d.errors = append(d.errors, fmt.Sprintf("logs: only %d of %d pods", maxPods, len(objects)))
			return
		}
		var pod corev1.Pod
		if encoded, err := json.Marshal(object.Object); err != nil || json.Unmarshal(encoded, &pod) != nil {
			continue
		}
		path := "/api/v1/namespaces/" + pod.Namespace + "/pods/" + pod.Name
		for _, container := range pod.Spec.Containers {
			file := "logs/" + pod.Name + "/" + container.Name
			d.log(ctx, file, path, container.Name, false)
			if slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool {
				return status.Name == container.Name && status.RestartCount > 0
			}) {
				d.log(ctx, file+"-previous", path, container.Name, true)
			}
			for _, port := range container.Ports {
				if port.Name != "metrics" {
					continue
				}
				metrics, err := d.get(ctx, fmt.Sprintf("%s:%d/proxy/metrics", path, port.ContainerPort), "", "")
				d.fail("metrics of pod "+pod.Name, err)
				if err == nil {
					d.files["metrics/"+pod.Name+".txt"] = string(metrics)
				}
			}
		}
	}
}

func (d *dump) log(ctx context.Context, file, path, container string, previous bool) {
	request := d.cluster.Kube.CoreV1().RESTClient().Get().AbsPath(path, "log").
		Param("container", container).Param("tailLines", tailLines).Param("limitBytes", limitBytes)
	if previous {
		request = request.Param("previous", "true")
	}
	text, err := raw(request.Do(ctx))
	d.fail("log of "+file, err)
	if err == nil {
		d.files[file+".log"] = string(text)
	}
}
