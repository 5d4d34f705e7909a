// SPDX-License-Identifier: Apache-2.0

// Package cluster reaches the clusters of a set by the contexts of a kubeconfig,
// and gathers what there is to see of them.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// FieldManager is by whom this program's writes are.
const FieldManager = "kubectl-clusterset"

// A Cluster is one that can be asked and changed with the user's rights.
type Cluster struct {
	// Context is the name in the kubeconfig by which it is reached.
	Context string
	// Namespace is the one that its controller runs in.
	Namespace string
	// Config reaches its API server.
	Config  *rest.Config
	Kube    kubernetes.Interface
	Dynamic dynamic.Interface

	clock *serverClock
}

// FromConfig prepares the use of a cluster that is reached by a configuration,
// which is not changed.
func FromConfig(config *rest.Config, contextName, systemNamespace string) (*Cluster, error) {
	c := &Cluster{
		Context: contextName, Namespace: systemNamespace, Config: rest.CopyConfig(config),
		clock: &serverClock{},
	}
	c.Config.QPS = -1 // the API server's priority and fairness is the limit
	c.Config.UserAgent = FieldManager
	// A warning is for whoever writes manifests; here nobody can act on it.
	c.Config.WarningHandlerWithContext = rest.NoWarnings{}
	timed := rest.CopyConfig(c.Config)
	timed.Wrap(c.clock.wrap)
	client, err := rest.HTTPClientFor(timed)
	if err != nil {
		return nil, fmt.Errorf("context %s: %w", contextName, err)
	}
	if c.Kube, err = kubernetes.NewForConfigAndClient(timed, client); err != nil {
		return nil, fmt.Errorf("context %s: %w", contextName, err)
	}
	if c.Dynamic, err = dynamic.NewForConfigAndClient(timed, client); err != nil {
		return nil, fmt.Errorf("context %s: %w", contextName, err)
	}
	return c, nil
}

// Now is the time by the clock of the API server, to the second, as far as it
// has answered anything; else by the local one.
func (c *Cluster) Now() time.Time { return time.Now().Add(c.clock.ahead()) }

// Ahead is by how much the clock of the API server is ahead of the local one.
func (c *Cluster) Ahead() time.Duration { return c.clock.ahead() }

// An Identity is what tells clusters apart.
type Identity struct {
	// ID is what the controller calls its cluster.
	ID string
	// UID is that of the namespace kube-system.
	UID string
}

// ErrNeverRan is of a cluster whose controller has never said who it is.
var ErrNeverRan = errors.New("clusterset-controller has never run")

// Identify asks the cluster who it is. It is ErrNeverRan if its controller has
// never said so.
func (c *Cluster) Identify(ctx context.Context) (Identity, error) {
	namespace, err := c.Kube.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return Identity{}, fmt.Errorf("context %s: %w", c.Context, err)
	}
	lease, err := c.Kube.CoordinationV1().Leases(c.Namespace).Get(ctx, member.HeartbeatLease, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return Identity{}, fmt.Errorf("context %s: %w in namespace %s: install it there, or name its namespace with --system-namespace", c.Context, ErrNeverRan, c.Namespace)
	}
	if err != nil {
		return Identity{}, fmt.Errorf("context %s: %w", c.Context, err)
	}
	id := ptr.Deref(lease.Spec.HolderIdentity, "")
	if err := member.ValidateID(id); err != nil {
		return Identity{}, fmt.Errorf("context %s: the heartbeat in namespace %s: %w", c.Context, c.Namespace, err)
	}
	return Identity{ID: id, UID: string(namespace.UID)}, nil
}

// Credentials are the Secrets of the cluster's members, those alone of one
// member where its id is given.
func (c *Cluster) Credentials(ctx context.Context, id string) ([]corev1.Secret, error) {
	selector := member.ClusterLabel
	if id != "" {
		selector += "=" + id
	}
	list, err := c.Kube.CoreV1().Secrets(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("context %s: Secrets of members: %w", c.Context, err)
	}
	return list.Items, nil
}

// MemberLease shows the state of a member, nil where the controller wrote none.
func (c *Cluster) MemberLease(ctx context.Context, name string) (*coordinationv1.Lease, error) {
	lease, err := c.Kube.CoordinationV1().Leases(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil // none is an answer
	}
	return lease, err
}

// NewestEvent is the newest Event of an object, nil where there is none.
func (c *Cluster) NewestEvent(ctx context.Context, object metav1.Object) (*corev1.Event, error) {
	events, err := c.Events(ctx, object)
	if err != nil || len(events) == 0 {
		return nil, err
	}
	return &events[0], nil
}

// Events are those of an object, the newest first.
func (c *Cluster) Events(ctx context.Context, object metav1.Object) ([]corev1.Event, error) {
	list, err := c.Kube.CoreV1().Events(object.GetNamespace()).List(ctx,
		metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(object.GetUID())})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(list.Items, func(a, b corev1.Event) int {
		// Their times are of whole seconds.
		if order, err := resourceversion.CompareResourceVersion(b.ResourceVersion, a.ResourceVersion); err == nil {
			return order
		}
		return EventTime(&b).Compare(EventTime(&a))
	})
	return list.Items, nil
}

// EventTime is when something happened last that an Event tells of, to the
// second.
func EventTime(event *corev1.Event) time.Time {
	for _, at := range []time.Time{event.LastTimestamp.Time, event.EventTime.Time, event.FirstTimestamp.Time} {
		if !at.IsZero() {
			return at
		}
	}
	return event.CreationTimestamp.Time
}

// Distinct returns an error where two contexts lead to one cluster, or two
// clusters call themselves the same. The lists correspond.
func Distinct(clusters []*Cluster, identities []Identity) error {
	var wrong []error
	for i := range clusters {
		for j := range i {
			switch {
			case identities[i].UID == identities[j].UID:
				wrong = append(wrong, fmt.Errorf("contexts %s and %s lead to the same cluster: name each cluster once",
					clusters[j].Context, clusters[i].Context))
			case identities[i].ID == identities[j].ID:
				wrong = append(wrong, fmt.Errorf(
					"the clusters of contexts %s and %s both call themselves %s: give one of their controllers another --cluster-id", clusters[j].Context, clusters[i].Context, identities[i].ID))
			}
		}
	}
	return errors.Join(wrong...)
}
