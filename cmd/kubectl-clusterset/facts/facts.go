// SPDX-License-Identifier: Apache-2.0

// Package facts gathers what there is to see of a cluster of the set. It judges
// nothing.
package facts

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/join"
	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// Facts are what was seen of one cluster.
type Facts struct {
	// Context is how it was reached.
	Context string
	// ID is what its controller calls it, empty where it never said.
	ID string
	// UID is that of its namespace kube-system.
	UID string
	// System is the namespace of its controller, whether it exists or not.
	System string
	// Now is the time by its clock, which is Ahead of the local one.
	Now   time.Time
	Ahead time.Duration
	// Version is that of its API server, as in v1.37.1.
	Version string
	// MCSVersion is the served version of the MCS API, empty where there is none.
	MCSVersion string
	// Heartbeat and Leader are the Leases of its controller, nil where they do
	// not exist.
	Heartbeat, Leader *coordinationv1.Lease
	// Namespaces are all, by name.
	Namespaces map[string]*corev1.Namespace
	// Members are those that Secrets or Leases name, sorted by ID.
	Members []Member
	// SecretsUnseen says why the credentials of members are not known.
	SecretsUnseen error
	// Exports, Imports, Services and Slices are those of the namespace that was
	// asked for, or of all. Slices are all with a source cluster, and those of
	// Services of the namespace that was asked for.
	Exports  []v1beta1.ServiceExport
	Imports  []v1beta1.ServiceImport
	Services []corev1.Service
	Slices   []*discoveryv1.EndpointSlice
}

// A Member is another cluster, as this one has it.
type Member struct {
	ID string
	// Secret is the credential that is used, nil where there is none or
	// Secrets may not be read. Surplus are others with the same id.
	Secret  *corev1.Secret
	Surplus []string
	// Credential is what is in it, Refused why it cannot be used.
	Credential member.Credential
	Refused    error
	// Expires is when it ends, zero where it does not or that is not known.
	Expires time.Time
	// CIDRs confine its addresses; none means that they are not.
	CIDRs []netip.Prefix
	// Event is the newest on the Secret, nil where there is none.
	Event *corev1.Event
	// Lease shows its state, nil where the controller wrote none.
	Lease *coordinationv1.Lease
	// Published are the slices that it publishes, as far as Unread is nil.
	Published []*discoveryv1.EndpointSlice
	Unread    error
	// ReadBy says how they were read.
	ReadBy string
	// Heartbeat is the one that it publishes, nil where it was not read.
	Heartbeat *coordinationv1.Lease
}

// State is what this cluster's controller believes of the member.
func (m *Member) State() liveness.State {
	if m.Lease == nil {
		return liveness.Fresh
	}
	return liveness.ParseState(m.Lease.Annotations[controller.MemberStateAnnotation])
}

// Warning is what the controller said last of the member, nil where that was no
// warning, and where what it warns of is over.
func (m *Member) Warning() *corev1.Event {
	switch {
	case m.Event == nil || m.Event.Type != corev1.EventTypeWarning:
		return nil
	case m.Event.Reason == controller.EventMemberMistaken && m.Heartbeat != nil && ptr.Deref(m.Heartbeat.Spec.HolderIdentity, "") == m.ID:
		return nil // its id was corrected
	}
	return m.Event
}

// Drained tells whether a person asked for the member's endpoints to be
// demoted.
func (m *Member) Drained() bool {
	return m.Secret != nil && m.Secret.Annotations[controller.AnnotationDrain] == "true"
}

// Heard is when the member was heard last by the clock of this cluster, zero
// where it never was. It may be early by a third of the time after which
// silence counts.
func (m *Member) Heard() time.Time {
	if m.Lease == nil || m.Lease.Spec.RenewTime == nil {
		return time.Time{}
	}
	return m.Lease.Spec.RenewTime.Time
}

// Drained tells whether a person asked for the cluster's own endpoints to be
// demoted in itself.
func (f *Facts) Drained() bool {
	namespace := f.Namespaces[f.System]
	return namespace != nil && namespace.Annotations[controller.AnnotationDrain] == "true"
}

// Member returns one, nil where there is none.
func (f *Facts) Member(id string) *Member {
	for i := range f.Members {
		if f.Members[i].ID == id {
			return &f.Members[i]
		}
	}
	return nil
}

// Copies are the slices that the controller made here for a service, of one
// source cluster.
func (f *Facts) Copies(service types.NamespacedName, source string) []*discoveryv1.EndpointSlice {
	var copies []*discoveryv1.EndpointSlice
	for _, slice := range f.Slices {
		if export.IsManaged(slice) && member.ServiceOf(slice) == service && slice.Labels[export.LabelSourceCluster] == source {
			copies = append(copies, slice)
		}
	}
	return copies
}

// Gather looks at a cluster. Services, and slices that no cluster publishes,
// are looked at in the given namespace only, in none where it is empty. What
// may not be read or is not there is left out; it is an error where the API
// server does not answer.
func Gather(ctx context.Context, c *cluster.Cluster, namespace string) (*Facts, error) {
	f := &Facts{Context: c.Context, System: c.Namespace, Namespaces: map[string]*corev1.Namespace{}}
	version, err := c.Kube.Discovery().ServerVersion()
	if err != nil {
		return nil, err
	}
	f.Version = version.GitVersion
	if f.MCSVersion, err = c.MCSVersion(ctx); err != nil {
		return nil, err
	}
	for _, gather := range []func(context.Context, *cluster.Cluster, string) error{f.namespaces, f.leases, f.members, f.services, f.slices, f.mcs} {
		if err := gather(ctx, c, namespace); err != nil {
			return nil, err
		}
	}
	f.Now, f.Ahead = c.Now(), c.Ahead()
	return f, nil
}

func (f *Facts) namespaces(ctx context.Context, c *cluster.Cluster, _ string) error {
	list, err := c.Kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		f.Namespaces[list.Items[i].Name] = &list.Items[i]
	}
	if system := f.Namespaces[metav1.NamespaceSystem]; system != nil {
		f.UID = string(system.UID)
	}
	return nil
}

func (f *Facts) leases(ctx context.Context, c *cluster.Cluster, _ string) error {
	list, err := c.Kube.CoordinationV1().Leases(c.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		lease := &list.Items[i]
		switch id := lease.Labels[member.ClusterLabel]; {
		case lease.Name == member.HeartbeatLease:
			f.Heartbeat, f.ID = lease, ptr.Deref(lease.Spec.HolderIdentity, "")
		case lease.Name == controller.LeaderLease:
			f.Leader = lease
		case id != "" && lease.Name == controller.MemberLeasePrefix+id:
			f.Members = append(f.Members, Member{ID: id, Lease: lease})
		}
	}
	return nil
}

func (f *Facts) members(ctx context.Context, c *cluster.Cluster, _ string) error {
	secrets, err := c.Credentials(ctx, "")
	if apierrors.IsForbidden(err) {
		f.SecretsUnseen = err
		secrets, err = nil, nil
	}
	if err != nil {
		return err
	}
	// The oldest is used.
	slices.SortFunc(secrets, func(a, b corev1.Secret) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for i := range secrets {
		secret := &secrets[i]
		id := secret.Labels[member.ClusterLabel]
		m := f.Member(id)
		if m == nil {
			f.Members = append(f.Members, Member{ID: id})
			m = &f.Members[len(f.Members)-1]
		}
		if m.Secret != nil {
			m.Surplus = append(m.Surplus, secret.Name)
			continue
		}
		m.Secret = secret
		m.Credential, m.Refused = member.ParseKubeconfig(secret.Data[member.KubeconfigKey])
		m.Expires = join.Expiry(secret.Data[member.KubeconfigKey])
		cidrs, err := member.ParseCIDRs(secret.Annotations[member.CIDRsAnnotation])
		m.CIDRs, m.Refused = cidrs, cmp.Or(m.Refused, err)
		m.Refused = cmp.Or(m.Refused, member.ValidateID(id))
		if m.Event, err = c.NewestEvent(ctx, secret); err != nil && !apierrors.IsForbidden(err) {
			return err
		}
	}
	slices.SortFunc(f.Members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return nil
}

func (f *Facts) services(ctx context.Context, c *cluster.Cluster, namespace string) error {
	if namespace == "" {
		return nil
	}
	list, err := c.Kube.CoreV1().Services(namespace).List(ctx, metav1.ListOptions{})
	if err == nil {
		f.Services = list.Items
	}
	return err
}

func (f *Facts) slices(ctx context.Context, c *cluster.Cluster, namespace string) error {
	options := metav1.ListOptions{}
	if namespace == "" {
		options.LabelSelector = export.LabelSourceCluster
	}
	list, err := c.Kube.DiscoveryV1().EndpointSlices(namespace).List(ctx, options)
	if err != nil {
		return err
	}
	f.Slices = pointers(list.Items)
	return nil
}

func (f *Facts) mcs(ctx context.Context, c *cluster.Cluster, namespace string) (err error) {
	if f.MCSVersion == "" {
		return nil
	}
	// One of the two definitions may be missing.
	if f.Exports, err = c.ServiceExports(ctx, namespace); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if f.Imports, err = c.ServiceImports(ctx, namespace); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

func pointers[T any](list []T) []*T {
	out := make([]*T, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}

// askTimeout bounds how long a member is waited for.
const askTimeout = 5 * time.Second

// Ask reads what the members of a cluster publish in a namespace, in all where
// it is empty: from the facts of the member where there are any, else as the
// controller does, by its credential.
func (f *Facts) Ask(ctx context.Context, namespace string, others []*Facts) {
	var group sync.WaitGroup
	for i := range f.Members {
		m := &f.Members[i]
		if known := ofID(others, m.ID); known != nil && known != f {
			m.ReadBy = "context " + known.Context
			m.Heartbeat = known.Heartbeat
			for _, slice := range known.Slices {
				if slice.Labels[export.LabelSourceCluster] == m.ID {
					m.Published = append(m.Published, slice)
				}
			}
			continue
		}
		group.Go(func() { m.ask(ctx, namespace) })
	}
	group.Wait()
}

func ofID(all []*Facts, id string) *Facts {
	for _, f := range all {
		if f.ID == id {
			return f
		}
	}
	return nil
}

func (m *Member) ask(ctx context.Context, namespace string) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	m.ReadBy = "its credential"
	switch {
	case m.Secret == nil:
		m.Unread = errors.New("there is no credential to read it by")
		return
	case m.Refused != nil:
		m.Unread = m.Refused
		return
	}
	by, err := cluster.FromConfig(m.Credential.Config, m.ID, m.Credential.Namespace)
	if err == nil {
		var list *discoveryv1.EndpointSliceList
		list, err = by.Kube.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{LabelSelector: export.LabelSourceCluster + "=" + m.ID})
		if err == nil {
			m.Published = pointers(list.Items)
			m.Heartbeat, err = by.Kube.CoordinationV1().Leases(m.Credential.Namespace).Get(ctx, member.HeartbeatLease, metav1.GetOptions{})
		}
	}
	if err != nil {
		m.Unread = errors.New(strings.TrimSuffix(err.Error(), "\n"))
	}
}
