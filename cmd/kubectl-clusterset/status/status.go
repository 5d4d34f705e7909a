// SPDX-License-Identifier: Apache-2.0

// Package status summarizes a cluster of the set: members, imports and conflicts.
// It reads facts and sends no requests.
package status

import (
	"cmp"
	"slices"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/facts"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// A Status is that of one cluster.
type Status struct {
	Context string `json:"context"`
	// Unreachable is why nothing else is known.
	Unreachable string `json:"unreachable,omitempty"`
	Cluster     string `json:"cluster,omitempty"`
	// Heartbeat is when the controller last renewed its heartbeat.
	Heartbeat  *metav1.Time `json:"heartbeat,omitempty"`
	Leader     string       `json:"leader,omitempty"`
	Drained    bool         `json:"drained,omitempty"`
	MCSVersion string       `json:"mcsVersion,omitempty"`
	// Version is that of Kubernetes, Controller that of the controller.
	Version    string    `json:"version,omitempty"`
	Controller string    `json:"controller,omitempty"`
	Members    []Member  `json:"members"`
	Imports    []Import  `json:"imports"`
	Conflicts  []Trouble `json:"conflicts"`
	// Invalid are exports that do not count.
	Invalid []Trouble `json:"invalid"`
	now     time.Time
}

// A Member is another cluster of the set.
type Member struct {
	Cluster string `json:"cluster"`
	State   string `json:"state"`
	// Path is that to its pods: unknown, reachable, unreachable or unproven.
	Path    string       `json:"path"`
	Drained bool         `json:"drained,omitempty"`
	Heard   *metav1.Time `json:"lastHeartbeat,omitempty"`
	// Services and Endpoints are those imported from it; Ready are the endpoints that
	// receive traffic.
	Services  int `json:"services"`
	Endpoints int `json:"endpoints"`
	Ready     int `json:"ready"`
	// Behind is the number of services whose import differs from what it publishes,
	// Since is since when; nil if what it publishes could not be read.
	Behind *int         `json:"behind,omitempty"`
	Since  *metav1.Time `json:"since,omitempty"`
	// Unread is why.
	Unread string `json:"unread,omitempty"`
	// Credential is the name of the Secret, Expires when its token expires.
	Credential string       `json:"credential,omitempty"`
	Expires    *metav1.Time `json:"expires,omitempty"`
	// Ending is set if less than a fifth of the life of the token is left, so that its renewal failed.
	Ending bool `json:"ending,omitempty"`
	// Server is the API server that it is read from, ServerName the name in its certificate if that is another, and Proxy
	// what it is read through, without a password.
	Server     string `json:"server,omitempty"`
	ServerName string `json:"tlsServerName,omitempty"`
	Proxy      string `json:"proxy,omitempty"`
	UID        string `json:"uid,omitempty"`
	// Warning is the message of the most useful Warning Event about it.
	Warning string `json:"warning,omitempty"`
}

// An Import is a service that is imported.
type Import struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Type      string   `json:"type"`
	IPs       []string `json:"ips,omitempty"`
	Ports     []string `json:"ports,omitempty"`
	Clusters  []string `json:"clusters"`
	Endpoints int      `json:"endpoints"`
	Ready     int      `json:"ready"`
	Reason    string   `json:"reason"`
	Message   string   `json:"message,omitempty"`
}

// A Trouble is a problem of an export.
type Trouble struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Reason    string `json:"reason"`
	Message   string `json:"message"`
}

// Unreached is the status of an unreachable cluster.
func Unreached(context string, why error) Status {
	return Status{
		Context: context, Unreachable: why.Error(),
		Members: []Member{}, Imports: []Import{}, Conflicts: []Trouble{}, Invalid: []Trouble{},
	}
}

// Of is the status of a cluster. facts.Ask must have read its members. Imports and
// exports are those of a namespace, or of all if it is empty; members are always
// those of all.
func Of(f *facts.Facts, namespace string) Status {
	s := Status{
		Context: f.Context, Cluster: f.ID, Version: f.Version, MCSVersion: f.MCSVersion, Drained: f.Drained(),
		now:     f.Now,
		Members: []Member{}, Imports: []Import{}, Conflicts: []Trouble{}, Invalid: []Trouble{},
	}
	shown := func(object metav1.Object) bool { return namespace == "" || object.GetNamespace() == namespace }
	if f.Heartbeat != nil && f.Heartbeat.Spec.RenewTime != nil {
		s.Heartbeat = timeOf(f.Heartbeat.Spec.RenewTime.Time)
		s.Controller = f.Heartbeat.Annotations[member.HeartbeatVersionAnnotation]
	}
	if f.Leader != nil {
		s.Leader = ptr.Deref(f.Leader.Spec.HolderIdentity, "")
	}
	for i := range f.Members {
		s.Members = append(s.Members, memberOf(f, &f.Members[i]))
	}
	for i := range f.Imports {
		if shown(&f.Imports[i]) {
			s.Imports = append(s.Imports, importOf(f, &f.Imports[i]))
		}
	}
	slices.SortFunc(s.Imports, func(a, b Import) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for i := range f.Exports {
		serviceExport := &f.Exports[i]
		if !shown(serviceExport) {
			continue
		}
		trouble := func(kind v1beta1.ServiceExportConditionType, status metav1.ConditionStatus) []Trouble {
			condition := meta.FindStatusCondition(serviceExport.Status.Conditions, string(kind))
			if condition == nil || condition.Status != status {
				return nil
			}
			return []Trouble{{serviceExport.Namespace, serviceExport.Name, condition.Reason, condition.Message}}
		}
		s.Conflicts = append(s.Conflicts, trouble(v1beta1.ServiceExportConditionConflict, metav1.ConditionTrue)...)
		s.Invalid = append(s.Invalid, trouble(v1beta1.ServiceExportConditionValid, metav1.ConditionFalse)...)
	}
	return s
}

func memberOf(f *facts.Facts, m *facts.Member) Member {
	out := Member{Cluster: m.ID, State: m.State().String(), Path: m.Path().String(), Drained: m.Drained(), Heard: timeOf(m.Heard())}
	if m.Lease == nil {
		out.State = "unknown"
	} else {
		out.UID = m.Lease.Annotations[member.HeartbeatUIDAnnotation]
	}
	if m.Secret != nil {
		out.Credential, out.Expires, out.Ending = m.Secret.Name, timeOf(m.Expires), m.Ending(f.Now)
	}
	if config := m.Credential.Config; config != nil {
		out.Server, out.ServerName = config.Host, config.ServerName
		if proxy := member.ProxyOf(config); proxy != nil {
			out.Proxy = proxy.Redacted()
		}
	}
	if warning := m.Foremost(); warning != nil {
		out.Warning = warning.Message
	}
	services := map[types.NamespacedName]bool{}
	for _, slice := range f.Slices {
		if slice.Labels[export.LabelSourceCluster] == m.ID && export.IsManaged(slice) {
			services[member.ServiceOf(slice)] = true
			count(slice, &out.Endpoints, &out.Ready)
		}
	}
	out.Services = len(services)
	if m.Unread != nil {
		out.Unread = m.Unread.Error()
		return out
	}
	for _, slice := range m.Published {
		if f.Takes(slice.Namespace) {
			services[member.ServiceOf(slice)] = true
		}
	}
	behind := 0
	var since time.Time
	for service := range services {
		for _, source := range f.Sources(service) {
			if source.Cluster == m.ID && source.Behind() {
				behind++
				if at := source.Since(); since.IsZero() || !at.IsZero() && at.Before(since) {
					since = at
				}
			}
		}
	}
	out.Behind, out.Since = &behind, timeOf(since)
	return out
}

// reasonForeign is that of an import of another implementation.
const reasonForeign = "Foreign"

func importOf(f *facts.Facts, serviceImport *v1beta1.ServiceImport) Import {
	out := Import{
		Namespace: serviceImport.Namespace, Name: serviceImport.Name,
		Type: string(serviceImport.Spec.Type), IPs: serviceImport.Spec.IPs, Clusters: []string{}, Reason: "Unknown",
	}
	for _, port := range serviceImport.Spec.Ports {
		out.Ports = append(out.Ports, PortText(port))
	}
	for _, each := range serviceImport.Status.Clusters {
		out.Clusters = append(out.Clusters, each.Cluster)
	}
	for _, slice := range f.Slices {
		if slice.Namespace == out.Namespace && slice.Labels[export.LabelService] == out.Name {
			count(slice, &out.Endpoints, &out.Ready)
		}
	}
	ready := meta.FindStatusCondition(serviceImport.Status.Conditions, string(v1beta1.ServiceImportConditionReady))
	switch {
	case !export.IsManaged(serviceImport):
		out.Reason = reasonForeign
	case ready != nil:
		out.Reason = ready.Reason
		if ready.Status != metav1.ConditionTrue {
			out.Message = ready.Message
		}
	}
	return out
}

// PortText is a port as conditions show it, as in http:80/TCP.
func PortText(port v1beta1.ServicePort) string {
	text := itoa(port.Port) + "/" + string(port.Protocol)
	if port.Name != "" {
		text = port.Name + ":" + text
	}
	return text
}

func count(slice *discoveryv1.EndpointSlice, endpoints, ready *int) {
	for i := range slice.Endpoints {
		*endpoints++
		if ptr.Deref(slice.Endpoints[i].Conditions.Ready, true) {
			*ready++
		}
	}
}

func timeOf(at time.Time) *metav1.Time {
	if at.IsZero() {
		return nil
	}
	return &metav1.Time{Time: at}
}
