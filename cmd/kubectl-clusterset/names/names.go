// SPDX-License-Identifier: Apache-2.0

// Package names has the names by which the command line knows the objects of the controller. They are part of its API, as
// what it answers is: a test holds them against those of the controller.
package names

import (
	"fmt"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// Names of labels, annotations and objects.
const (
	Domain = "clusterset-dns.github.io"
	// Namespace is the default namespace of the controller.
	Namespace = "clusterset-dns"
	// Leader and Heartbeat are Leases of the controller; MemberLease begins the name of the Lease of a member.
	Leader      = "clusterset-controller"
	Heartbeat   = "clusterset-dns-heartbeat"
	MemberLease = "clusterset-dns-member-"
	// ClusterLabel marks the Secret and the Lease of a member, ReaderLabel the ServiceAccount of a reader.
	ClusterLabel = Domain + "/cluster"
	ReaderLabel  = Domain + "/reader"
	// KubeconfigKey is the key of the kubeconfig in the Secret of a member.
	KubeconfigKey = "kubeconfig"
	// Origin, State and Drain are annotations.
	Origin = Domain + "/origin"
	State  = Domain + "/state"
	Drain  = Domain + "/drain"
	// LabelSet names the cluster set of an object, and in the heartbeat, as an annotation, that of the controller.
	LabelSet      = Domain + "/clusterset"
	ManagedBy     = "app.kubernetes.io/managed-by"
	SliceManaged  = discoveryv1.LabelManagedBy
	Service       = v1beta1.LabelServiceName
	SourceCluster = v1beta1.LabelSourceCluster

	manager      = "clusterset-controller." + Domain
	namedManager = "named." + manager
)

// A Set is the name of a cluster set, empty for the default set.
type Set string

// String returns the set as text.
func (s Set) String() string {
	if s == "" {
		return "the default cluster set"
	}
	return "cluster set " + string(s)
}

// Slices is the label selector of the EndpointSlices that the controller of the set manages.
func (s Set) Slices() string {
	if s == "" {
		return SliceManaged + "=" + manager + ",!" + LabelSet
	}
	return SliceManaged + "=" + namedManager + "," + LabelSet + "=" + string(s)
}

// Account is the name of the ServiceAccount of a reader.
func Account(reader string) string { return "clusterset-member-" + reader }

// ValidateID returns an error unless id is a valid cluster id: a DNS label, or two joined with a dot (KEP-2149).
func ValidateID(id string) error {
	parts := strings.Split(id, ".")
	for _, part := range parts {
		if len(parts) > 2 || len(id) > validation.LabelValueMaxLength || len(validation.IsDNS1123Label(part)) > 0 {
			return fmt.Errorf("cluster id %q: use a DNS label, or two joined with a dot, of at most %d characters", id,
				validation.LabelValueMaxLength)
		}
	}
	return nil
}
