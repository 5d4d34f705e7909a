// SPDX-License-Identifier: Apache-2.0

// Package cluster gives commands clients of a cluster's API server and DNS, and the state that its controller reports.
package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// Names of the controller's objects. They are part of the API of the controller, as its responses are. A test compares them
// with the names in the controller.
const (
	domain = "clusterset-dns.github.io"
	// DefaultNamespace is the default namespace of the controller.
	DefaultNamespace = "clusterset-dns"
	// HeartbeatLease is a Lease of the controller; MemberLease begins the name of the Lease of a member.
	HeartbeatLease = "clusterset-dns-heartbeat"
	MemberLease    = "clusterset-dns-member-"
	// ClusterLabel marks the Secret and the Lease of a member, ReaderLabel the ServiceAccount of a reader.
	ClusterLabel = domain + "/cluster"
	ReaderLabel  = domain + "/reader"
	// KubeconfigKey is the key of the kubeconfig in the Secret of a member.
	KubeconfigKey    = "kubeconfig"
	OriginAnnotation = domain + "/origin"
	StateAnnotation  = domain + "/state"
	DrainAnnotation  = domain + "/drain"
	CIDRsAnnotation  = domain + "/cidrs"
	// AddressAnnotation on a Node has the addresses by which other networks reach it.
	AddressAnnotation = domain + "/address"
	// PropertiesAnnotation has the ClusterProperties in the heartbeat, as JSON. NetworkProperty is the property of the network.
	PropertiesAnnotation = domain + "/properties"
	NetworkProperty      = "network." + domain
	ManagedByLabel       = "app.kubernetes.io/managed-by"
	ServiceLabel         = v1beta1.LabelServiceName
	SourceLabel          = v1beta1.LabelSourceCluster

	// ManagedSlices is the label selector of the EndpointSlices that the controller manages.
	ManagedSlices = discoveryv1.LabelManagedBy + "=clusterset-controller." + domain
)

// Account is the name of the ServiceAccount of a reader.
func Account(reader string) string { return "clusterset-member-" + reader }

// FieldManager is the field manager of all writes, and the value of the label managed-by.
const FieldManager = "kubectl-clusterset"

// A Cluster has the clients for one cluster, with the rights of the user.
type Cluster struct {
	// Context is the name in the kubeconfig.
	Context string
	// Namespace is the namespace of its controller.
	Namespace string
	// Controller is the address of its leading controller, and DNSAddress of its DNS. Empty means a port-forward to a pod.
	Controller, DNSAddress string
	// Config connects to its API server.
	Config  *rest.Config
	Kube    kubernetes.Interface
	Dynamic dynamic.Interface
	// ID is the cluster id, UID the UID of the namespace kube-system, and Network the network of the pods, empty for the
	// default one. Identify reads them.
	ID, UID, Network string
}

// FromConfig makes clients from a configuration, which is not changed.
func FromConfig(config *rest.Config, contextName, systemNamespace string) (*Cluster, error) {
	c := &Cluster{Context: contextName, Namespace: systemNamespace, Config: rest.CopyConfig(config)}
	c.Config.QPS = -1 // the API server's priority and fairness is the limit
	c.Config.UserAgent = FieldManager
	// Warnings are for authors of manifests.
	c.Config.WarningHandlerWithContext = rest.NoWarnings{}
	err := rest.LoadTLSFiles(c.Config)
	if err == nil {
		c.Kube, err = kubernetes.NewForConfig(c.Config)
	}
	if err == nil {
		c.Dynamic, err = dynamic.NewForConfig(c.Config)
	}
	if err != nil {
		return nil, fmt.Errorf("context %s: %w", contextName, err)
	}
	return c, nil
}

// Each calls do for all clusters at once, and returns when all calls have returned. The error names the contexts.
func Each(clusters []*Cluster, do func(i int, c *Cluster) error) error {
	failed := make([]error, len(clusters))
	var group sync.WaitGroup
	for i, c := range clusters {
		group.Go(func() {
			if err := do(i, c); err != nil {
				failed[i] = fmt.Errorf("context %s: %w", c.Context, err)
			}
		})
	}
	group.Wait()
	return errors.Join(failed...)
}

// DryRun is the field DryRun of the options of a write.
func DryRun(on bool) []string {
	if on {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// ErrForbidden is the error if the user has no right to ask the controller.
var ErrForbidden = errors.New("you may not ask the controller")

// ErrNeverRan is the error of a cluster without a heartbeat.
var ErrNeverRan = errors.New("clusterset-controller has never run")

// Identify reads the identity of the cluster. The error wraps ErrNeverRan if there is no heartbeat.
func (c *Cluster) Identify(ctx context.Context) error {
	namespace, err := c.Kube.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return err
	}
	c.UID = string(namespace.UID)
	lease, err := c.Kube.CoordinationV1().Leases(c.Namespace).Get(ctx, HeartbeatLease, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w in namespace %s: install it there, or set its namespace with --system-namespace", ErrNeverRan, c.Namespace)
	}
	if err != nil {
		return err
	}
	id := ptr.Deref(lease.Spec.HolderIdentity, "") // used in label selectors
	if id == "" || len(validation.IsValidLabelValue(id)) > 0 {
		return fmt.Errorf("the heartbeat in namespace %s has the invalid cluster id %q: correct it", c.Namespace, id)
	}
	var properties map[string]string
	_ = json.Unmarshal([]byte(lease.Annotations[PropertiesAnnotation]), &properties) // valid: the controller wrote it
	c.ID, c.Network = id, properties[NetworkProperty]
	return nil
}

// Credentials are the Secrets of all members, or of the member with an id.
func (c *Cluster) Credentials(ctx context.Context, id string) ([]corev1.Secret, error) {
	list, err := c.Kube.CoreV1().Secrets(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: ClusterLabel})
	if err != nil {
		return nil, fmt.Errorf("context %s: Secrets of members: %w", c.Context, err)
	}
	return slices.DeleteFunc(list.Items, func(s corev1.Secret) bool { return id != "" && s.Labels[ClusterLabel] != id }), nil
}

// Identify reads the identities of clusters. It is an error if two contexts refer to one cluster, or two clusters have one
// id.
func Identify(ctx context.Context, clusters []*Cluster) error {
	if err := Each(clusters, func(_ int, c *Cluster) error { return c.Identify(ctx) }); err != nil {
		return err
	}
	return distinct(clusters)
}

func distinct(clusters []*Cluster) error {
	var wrong []error
	for i, c := range clusters {
		for _, other := range clusters[:i] {
			switch {
			case c.UID == other.UID:
				wrong = append(wrong, fmt.Errorf("contexts %s and %s refer to the same cluster: name each cluster once", other.Context,
					c.Context))
			case c.ID == other.ID:
				wrong = append(wrong, fmt.Errorf("the clusters of contexts %s and %s both have the id %s: give one of the controllers "+
					"another --cluster-id", other.Context, c.Context, c.ID))
			}
		}
	}
	return errors.Join(wrong...)
}
