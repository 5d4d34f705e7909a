// SPDX-License-Identifier: Apache-2.0

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
)

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
	// Issued is when it was made, Expires when it ends; zero where it does not,
	// or that is not known.
	Issued, Expires time.Time
	// CIDRs confine its addresses; none means that they are not.
	CIDRs []netip.Prefix
	// Rank is that of its exports in conflicts.
	Rank int
	// Events are those on the Secret, the newest first.
	Events []corev1.Event
	// Lease shows its state, nil where the controller wrote none.
	Lease *coordinationv1.Lease
	// Published are the slices that it publishes, as far as Unread is nil.
	Published []*discoveryv1.EndpointSlice
	Unread    error
	// Context is the one by which they were read, empty where that was by the
	// credential.
	Context string
	// Heartbeat is the one that the credential leads to, nil where it was not
	// read.
	Heartbeat *coordinationv1.Lease
}

// State is what this cluster's controller believes of the member.
func (m *Member) State() liveness.State {
	if m.Lease == nil {
		return liveness.Fresh
	}
	return liveness.ParseState(m.Lease.Annotations[memberstate.StateAnnotation])
}

// about is what an Event of the controller on a Secret is about: of several
// about the same, the newest alone holds.
var about = map[string]string{
	memberstate.EventMemberCredentialInvalid: "reading",
	memberstate.EventMemberUnreachable:       "reading",
	memberstate.EventMemberReachable:         "reading",
	memberstate.EventMemberIdentityMismatch:  "identity",
	memberstate.EventMemberIdentityRestored:  "identity",
	memberstate.EventMemberOverLimit:         "limits",
	memberstate.EventMemberWithinLimits:      "limits",
	memberstate.EventMemberStale:             "life",
	memberstate.EventMemberGone:              "life",
	memberstate.EventMemberQuarantined:       "life",
	memberstate.EventMemberRecovered:         "life",
	memberstate.EventAllMembersSilent:        "life",
}

// Warnings are what the controller said of the member and has not taken back,
// the newest first.
func (m *Member) Warnings() []*corev1.Event {
	var warnings []*corev1.Event
	said := map[string]bool{}
	for i := range m.Events {
		event := &m.Events[i]
		of, known := about[event.Reason]
		if known && said[of] {
			continue
		}
		said[of] = known
		// A controller that began anew does not take back what the one before said.
		heard := of == "reading" && m.Heard().After(cluster.EventTime(event).Add(time.Second))
		if event.Type == corev1.EventTypeWarning && !heard && !m.corrected(event) {
			warnings = append(warnings, event)
		}
	}
	return warnings
}

// Warning is the newest of a reason among the Warnings, of any where none is
// named; nil where there is none.
func (m *Member) Warning(reasons ...string) *corev1.Event {
	for _, warning := range m.Warnings() {
		if len(reasons) == 0 || slices.Contains(reasons, warning.Reason) {
			return warning
		}
	}
	return nil
}

// Foremost is the one of the Warnings that says most: the newest, but where that
// says that the member is silent, why it cannot be read, if that is known. It
// is nil where there is none.
func (m *Member) Foremost() *corev1.Event {
	newest := m.Warning()
	if newest == nil || newest.Reason != memberstate.EventMemberStale && newest.Reason != memberstate.EventMemberGone {
		return newest
	}
	return cmp.Or(m.Warning(memberstate.EventMemberCredentialInvalid, memberstate.EventMemberUnreachable), newest)
}

// corrected tells whether an Event blames the member for an id that it does not
// have any more. The controller takes such a word back where the cluster
// changes its id, and not where the label on the Secret is another.
func (m *Member) corrected(event *corev1.Event) bool {
	if event.Reason != memberstate.EventMemberIdentityMismatch || !strings.Contains(event.Message, "calls itself") {
		return false
	}
	return !strings.Contains(event.Message, "the Secret says "+m.ID+":") || m.Holder() == m.ID
}

// Holder is what the cluster calls itself that the credential leads to, empty
// where that is not known.
func (m *Member) Holder() string {
	if m.Heartbeat == nil {
		return ""
	}
	return ptr.Deref(m.Heartbeat.Spec.HolderIdentity, "")
}

// Drained tells whether a person asked for the member's endpoints to be
// demoted.
func (m *Member) Drained() bool {
	return m.Secret != nil && m.Secret.Annotations[memberstate.AnnotationDrain] == "true"
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
			m.Context = known.Context
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

// Identify reads the heartbeat that the credential of each member leads to,
// where that is not known yet. It may be out of reach from here.
func (f *Facts) Identify(ctx context.Context) {
	var group sync.WaitGroup
	for i := range f.Members {
		m := &f.Members[i]
		if m.Heartbeat != nil || m.Secret == nil || m.Refused != nil {
			continue
		}
		group.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, askTimeout)
			defer cancel()
			if by, err := m.open(); err == nil {
				_ = m.identify(ctx, by) // not read is not known
			}
		})
	}
	group.Wait()
}

func (m *Member) open() (*cluster.Cluster, error) {
	return cluster.FromConfig(m.Credential.Config, m.ID, m.Credential.Namespace)
}

func (m *Member) identify(ctx context.Context, by *cluster.Cluster) error {
	heartbeat, err := by.Kube.CoordinationV1().Leases(m.Credential.Namespace).Get(ctx, member.HeartbeatLease,
		metav1.GetOptions{})
	if err == nil {
		m.Heartbeat = heartbeat
	}
	return err
}

func (m *Member) ask(ctx context.Context, namespace string) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	switch {
	case m.Secret == nil:
		m.Unread = errors.New("there is no credential to read it by")
		return
	case m.Refused != nil:
		m.Unread = m.Refused
		return
	}
	by, err := m.open()
	if err == nil {
		var list *discoveryv1.EndpointSliceList
		list, err = by.Kube.DiscoveryV1().EndpointSlices(namespace).List(ctx,
			metav1.ListOptions{LabelSelector: export.LabelSourceCluster + "=" + m.ID})
		if err == nil {
			m.Published = pointers(list.Items)
			err = m.identify(ctx, by)
		}
	}
	if err != nil {
		m.Unread = errors.New(strings.TrimSuffix(err.Error(), "\n"))
	}
}
