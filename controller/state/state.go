// SPDX-License-Identifier: Apache-2.0

// Package state has the documents with which the leading controller answers /statusz and /explainz, and the results that
// its probe pods log for kubectl clusterset test connectivity. Clients need no other package of the controller. Within a
// Version, fields are only added.
package state

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Version is the version of the documents.
const Version = "v1"

// Paths of the documents. Explain needs the query parameter service=namespace/name.
const (
	PathStatus  = "/statusz"
	PathExplain = "/explainz"
)

// A Cluster is the state of one cluster in the view of its controller.
type Cluster struct {
	Version string `json:"version"`
	// Cluster is the id of the cluster, and UID the UID of its namespace kube-system.
	Cluster string `json:"cluster"`
	UID     string `json:"uid"`
	// Network is the network of its pods, empty for the default one.
	Network string `json:"network,omitempty"`
	// Controller is the version of the controller, and MCSVersion the served version of the MCS API.
	Controller string `json:"controller"`
	MCSVersion string `json:"mcsVersion,omitempty"`
	// Now is the time of the answer. Compute ages relative to it: all times are by the clock of the controller.
	Now time.Time `json:"now"`
	// HeartbeatStopped is the reason why the heartbeat is not renewed, empty if it is.
	HeartbeatStopped string `json:"heartbeatStopped,omitempty"`
	Drained          bool   `json:"drained,omitempty"`
	Rank             int    `json:"rank,omitempty"`
	// Queue is the number of services that are being reconciled or wait for it.
	Queue    int      `json:"queue"`
	Members  []Member `json:"members"`
	Imports  []Import `json:"imports"`
	Findings Findings `json:"findings"`
}

// A Member is another cluster of the set.
type Member struct {
	Cluster string `json:"cluster"`
	// Network is the network of its pods, empty for the default one and before it is known.
	Network string `json:"network,omitempty"`
	// Controller is the version of its controller, empty if unknown.
	Controller string `json:"controller,omitempty"`
	// State is fresh, stale or gone, and Reason the reason for it: see liveness.Reason.
	State  string `json:"state"`
	Reason string `json:"reason"`
	// Path is the path to its pods: unknown, reachable or unreachable.
	Path    string `json:"path"`
	Drained bool   `json:"drained,omitempty"`
	Rank    int    `json:"rank,omitempty"`
	// LastHeartbeat is when its last heartbeat arrived, by the clock of this cluster.
	LastHeartbeat time.Time `json:"lastHeartbeat,omitzero"`
	// Synced reports whether its published slices were listed.
	Synced bool `json:"synced"`
	// Services and Endpoints count imports from it; Ready counts the endpoints that receive traffic.
	Services  int `json:"services"`
	Endpoints int `json:"endpoints"`
	Ready     int `json:"ready"`
	// Credential names the object or file that makes it a member, and Expires is when the credential expires.
	Credential string    `json:"credential"`
	Expires    time.Time `json:"expires,omitzero"`
	// Server is the address of its API server, without a password.
	Server string   `json:"server,omitempty"`
	CIDRs  []string `json:"cidrs,omitempty"`
}

// An Import is an imported service.
type Import struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Type      string   `json:"type"`
	IPs       []string `json:"ips,omitempty"`
	Ports     []string `json:"ports,omitempty"`
	Clusters  []string `json:"clusters"`
	Endpoints int      `json:"endpoints"`
	Ready     int      `json:"ready"`
	// Reason is the reason of the condition Ready, or Foreign if another implementation manages the import.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// Foreign is the reason of an import that the controller does not manage.
const Foreign = "Foreign"

// Severities of a Finding.
const (
	// Failed: multi-cluster names do not work, or soon will not.
	Failed = "failed"
	// Warning: the problem breaks nothing by itself.
	Warning = "warning"
)

// A Finding is a problem that the controller sees.
type Finding struct {
	// Name is the name of the check in kubectl clusterset.
	Name     string `json:"name"`
	Severity string `json:"severity"`
	What     string `json:"what"`
	// Fix is a command, or a sentence with commands between backquotes. "<context of west>" stands for a context of the
	// kubeconfig that reaches the cluster west.
	Fix string `json:"fix,omitempty"`
}

// Findings are problems, causes before their effects.
type Findings []Finding

// Fail adds a problem with severity Failed. name is the name of the check, and fix may be empty: see Finding.
func (f *Findings) Fail(name, fix, format string, args ...any) {
	f.add(Failed, name, fix, format, args)
}

// Warn adds a problem with severity Warning.
func (f *Findings) Warn(name, fix, format string, args ...any) {
	f.add(Warning, name, fix, format, args)
}

func (f *Findings) add(severity, name, fix, format string, args []any) {
	*f = append(*f, Finding{Name: name, Severity: severity, What: fmt.Sprintf(format, args...), Fix: fix})
}

// An Explanation says how the controller imports one service, and why.
type Explanation struct {
	Version string `json:"version"`
	Service string `json:"service"`
	Cluster string `json:"cluster"`
	// Import is nil if the service is not imported.
	Import *Import `json:"import,omitempty"`
	// Exports are sorted by their precedence in conflicts.
	Exports []Export `json:"exports"`
	// Conditions are the import's conditions that say how its preferences take effect.
	Conditions []metav1.Condition `json:"conditions"`
	Endpoints  []Endpoint         `json:"endpoints"`
	// DNS has the addresses to which the name resolves. For a headless service, an answer may have only a part of them.
	DNS      []string `json:"dns"`
	Problems Findings `json:"problems"`
}

// An Export is the export of one cluster.
type Export struct {
	Cluster string    `json:"cluster"`
	Since   time.Time `json:"since,omitzero"`
	// State is fresh, stale or gone, perhaps drained, or says that the export is not imported.
	State string `json:"state"`
	// Endpoints counts its endpoints, and Ready those that receive traffic in this cluster.
	Endpoints int `json:"endpoints"`
	Ready     int `json:"ready"`
	// Rules are the rules that decided which of its endpoints are used: tier, allowed clusters, weight and overload; and the
	// properties on which it conflicts with the first export.
	Rules []string `json:"rules,omitempty"`
}

// States of an endpoint.
const (
	Used     = "used"
	Demoted  = "demoted" // ready in its cluster, but others come first by the state of its cluster or by tiers
	Waiting  = "waiting" // ready, but hints put others first
	NotReady = "not ready"
	Unused   = "unused"  // its Service has none of the imported ports
	Outside  = "outside" // of the allowed clusters
)

// An Endpoint is one address behind the service.
type Endpoint struct {
	Address string `json:"address"`
	Cluster string `json:"cluster"`
	State   string `json:"state"`
	Reason  string `json:"reason"`
	// Zone is empty if unknown.
	Zone string `json:"zone,omitempty"`
}
