// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"
)

// A column of a table is the value at a path in an object.
type column struct {
	name, format string
	priority     int32
	path         []string
}

// columnsOf are the columns of a version in a CustomResourceDefinition, of which only plain paths are modeled.
func columnsOf(version map[string]any) []column {
	found := []column{{name: "Name", format: "string", path: []string{"metadata", "name"}}}
	listed, _, _ := unstructured.NestedSlice(version, "additionalPrinterColumns")
	for _, each := range listed {
		definition, _ := each.(map[string]any)
		name, _ := definition["name"].(string)
		format, _ := definition["type"].(string)
		path, _ := definition["jsonPath"].(string)
		priority, _ := definition["priority"].(int64)
		found = append(found, column{name, format, int32(priority), strings.Split(strings.TrimPrefix(path, "."), ".")})
	}
	if len(listed) == 0 {
		found = append(found, column{name: "Age", format: "date", path: []string{"metadata", "creationTimestamp"}})
	}
	return found
}

// headers are the columns of built-in resources that the tables of an API server have. All others have names and ages.
var headers = map[string]string{
	"endpointslices": "Name,AddressType,Ports,Endpoints,Age",
	"pods":           "Name,Ready,Status,Restarts,Age,*IP,*Node",
	"services":       "Name,Type,Cluster-IP,External-IP,Port(s),Age",
	"deployments":    "Name,Ready,Up-to-date,Available,Age",
	"statefulsets":   "Name,Ready,Age",
	"replicasets":    "Name,Desired,Current,Ready,Age",
	"namespaces":     "Name,Status,Age",
	"leases":         "Name,Holder,Age",
	"nodes":          "Name,Status,Roles,Age,Version",
	"secrets":        "Name,Type,Data,Age",
	"events":         "Last Seen,Type,Reason,Object,Message,*Name",
}

// tableOf shows objects of a kind, one in a row.
func tableOf(k *kind, objects ...runtime.Object) *metav1.Table {
	table := &metav1.Table{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "Table"}, Rows: []metav1.TableRow{}}
	for _, each := range k.columns {
		table.ColumnDefinitions = append(table.ColumnDefinitions,
			metav1.TableColumnDefinition{Name: each.name, Type: each.format, Priority: each.priority})
	}
	if k.columns == nil {
		for header := range strings.SplitSeq(cmp.Or(headers[k.resource], "Name,Age"), ",") {
			name, wide := strings.CutPrefix(header, "*")
			table.ColumnDefinitions = append(table.ColumnDefinitions,
				metav1.TableColumnDefinition{Name: name, Type: "string", Priority: map[bool]int32{true: 1}[wide]})
		}
	}
	table.ColumnDefinitions[0].Format = "name"
	for _, each := range objects {
		row := metav1.TableRow{Cells: cellsOf(each), Object: runtime.RawExtension{Object: partialOf(each)}}
		if k.columns != nil {
			row.Cells = customCells(k.columns, each)
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}

func customCells(columns []column, object runtime.Object) (cells []any) {
	custom, _ := object.(*unstructured.Unstructured)
	for _, each := range columns {
		value, found, _ := unstructured.NestedFieldNoCopy(custom.Object, each.path...)
		text, isText := value.(string)
		switch {
		case !found:
			cells = append(cells, nil)
		case each.format == "date":
			at, _ := time.Parse(time.RFC3339, text) // else it is "<invalid>" or old
			cells = append(cells, age(metav1.NewTime(at)))
		case isText || each.format != "string":
			cells = append(cells, value)
		default:
			encoded, _ := json.Marshal(value) // it was decoded
			cells = append(cells, string(encoded))
		}
	}
	return cells
}

func cellsOf(object runtime.Object) []any {
	m := access(object)
	name, old := m.GetName(), age(m.GetCreationTimestamp())
	switch object := object.(type) {
	case *discoveryv1.EndpointSlice:
		return []any{name, object.AddressType, portsOf(object), addressesOf(object), old}
	case *corev1.Pod:
		ready := 0
		for _, each := range object.Status.ContainerStatuses {
			if each.Ready {
				ready++
			}
		}
		status := string(object.Status.Phase)
		if object.DeletionTimestamp != nil {
			status = "Terminating"
		}
		return []any{
			name, fmt.Sprintf("%d/%d", ready, len(object.Spec.Containers)), status, "0", old,
			cmp.Or(object.Status.PodIP, "<none>"), cmp.Or(object.Spec.NodeName, "<none>"),
		}
	case *corev1.Service:
		var ports []string
		for _, each := range object.Spec.Ports {
			ports = append(ports, fmt.Sprintf("%d/%s", each.Port, each.Protocol))
		}
		return []any{
			name, object.Spec.Type, cmp.Or(object.Spec.ClusterIP, "<none>"), "<none>",
			cmp.Or(strings.Join(ports, ","), "<none>"), old,
		}
	case *appsv1.Deployment:
		return []any{
			name, fmt.Sprintf("%d/%d", object.Status.ReadyReplicas, ptr.Deref(object.Spec.Replicas, 1)),
			object.Status.UpdatedReplicas, object.Status.AvailableReplicas, old,
		}
	case *appsv1.StatefulSet:
		return []any{name, fmt.Sprintf("%d/%d", object.Status.ReadyReplicas, ptr.Deref(object.Spec.Replicas, 1)), old}
	case *appsv1.ReplicaSet:
		status := object.Status
		return []any{name, ptr.Deref(object.Spec.Replicas, 1), status.Replicas, status.ReadyReplicas, old}
	case *corev1.Namespace:
		return []any{name, object.Status.Phase, old}
	case *corev1.Node:
		status := "NotReady"
		for _, each := range object.Status.Conditions {
			if each.Type == corev1.NodeReady && each.Status == corev1.ConditionTrue {
				status = "Ready"
			}
		}
		return []any{name, status, "<none>", old, object.Status.NodeInfo.KubeletVersion}
	case *coordinationv1.Lease:
		return []any{name, ptr.Deref(object.Spec.HolderIdentity, ""), old}
	case *corev1.Secret:
		return []any{name, cmp.Or(object.Type, corev1.SecretTypeOpaque), len(object.Data), old}
	case *corev1.Event:
		involved := object.InvolvedObject
		return []any{
			age(object.LastTimestamp), object.Type, object.Reason, strings.ToLower(involved.Kind) + "/" + involved.Name,
			strings.TrimSpace(object.Message), name,
		}
	}
	return []any{name, old}
}

// most is how many ports or addresses a cell has.
const most = 3

func portsOf(slice *discoveryv1.EndpointSlice) string {
	var texts []string
	for _, each := range slice.Ports {
		text := ptr.Deref(each.Name, "*")
		if each.Port != nil {
			text = strconv.Itoa(int(*each.Port))
		}
		texts = append(texts, text)
	}
	return some(texts)
}

func addressesOf(slice *discoveryv1.EndpointSlice) string {
	var texts []string
	for _, each := range slice.Endpoints {
		texts = append(texts, each.Addresses...)
	}
	return some(texts)
}

func some(texts []string) string {
	if len(texts) > most {
		return fmt.Sprintf("%s + %d more...", strings.Join(texts[:most], ","), len(texts)-most)
	}
	return cmp.Or(strings.Join(texts, ","), "<unset>")
}

func age(at metav1.Time) string {
	if at.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(at.Time))
}
