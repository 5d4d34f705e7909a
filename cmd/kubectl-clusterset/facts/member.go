// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	"github.com/clusterset-dns/clusterset-dns/controller/accept"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
)

// A Member is another cluster, as this cluster knows it.
type Member struct {
	ID string
	// Secret is the credential in use, nil if there is none or Secrets cannot be read.
	// Surplus are others with the same id.
	Secret  *corev1.Secret
	Surplus []string
	// Credential is its content. Refused is why the controller rejects the Secret, and Invalid the key of the annotation
	// that Refused is about, empty if it is about the credential. An invalid annotation does not end the connection.
	Credential member.Credential
	Refused    error
	Invalid    string
	// Life is the validity of its token or client certificate.
	member.Life
	// CIDRs confine its addresses; none allows all.
	CIDRs []netip.Prefix
	// Rank is that of its exports in conflicts.
	Rank int
	// Events are those on the Secret, the newest first.
	Events []corev1.Event
	// Lease shows its state, nil if the controller wrote none.
	Lease *coordinationv1.Lease
	// Published are the slices that it publishes, Unread why they are unknown.
	Published []*discoveryv1.EndpointSlice
	Unread    error
	// Context is that by which they were read, empty if the credential was used.
	Context string
	// Heartbeat is that of the cluster that the credential refers to, nil if unknown.
	Heartbeat *coordinationv1.Lease
}

// parse reads the Secret in use as the controller does.
func (m *Member) parse(secret *corev1.Secret) {
	refuse := func(annotation string, err error) {
		if err != nil && m.Refused == nil {
			m.Refused, m.Invalid = err, annotation
		}
	}
	var err error
	m.Secret = secret
	refuse("", member.ValidateID(m.ID))
	m.Credential, err = member.ParseKubeconfig(secret.Data[member.KubeconfigKey])
	refuse("", err)
	m.Life = m.Credential.Life()
	m.CIDRs, err = member.ParseCIDRs(secret.Annotations[member.CIDRsAnnotation])
	refuse(member.CIDRsAnnotation, err)
	m.Rank, err = member.ParseRank(secret.Annotations)
	refuse(member.RankAnnotation, err)
	if _, err = accept.Parse(secret.Annotations[accept.Annotation]); err != nil {
		refuse(accept.Annotation, fmt.Errorf("annotation %s: %w", accept.Annotation, err))
	}
}

// unusable reports whether the credential cannot be used, or the ranges to which it is confined are unknown.
func (m *Member) unusable() bool {
	return m.Refused != nil && (m.Invalid == "" || m.Invalid == member.CIDRsAnnotation)
}

// State is that of the member in the judgment of the local controller.
func (m *Member) State() liveness.State {
	if m.Lease == nil {
		return liveness.Fresh
	}
	return liveness.ParseState(m.Lease.Annotations[memberstate.StateAnnotation])
}

// Path is the path to the pods of the member in the judgment of the local controller.
func (m *Member) Path() liveness.Path {
	if m.Lease == nil {
		return liveness.PathUnknown
	}
	return liveness.ParsePath(m.Lease.Annotations[memberstate.PathAnnotation])
}

// about is the subject of an Event on a Secret. Of several with one subject, the
// newest counts.
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
	memberstate.EventNoPodsReached:           "life",
}

// Warnings are the Warning Events about the member that still hold, the newest
// first.
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
		// A restarted controller does not resolve the Events of its predecessor.
		heard := of == "reading" && m.Heard().After(cluster.EventTime(event).Add(time.Second))
		if event.Type == corev1.EventTypeWarning && !heard && !m.corrected(event) {
			warnings = append(warnings, event)
		}
	}
	return warnings
}

// Warning is the newest of the Warnings with one of the reasons, or of all
// without reasons; nil if there is none.
func (m *Member) Warning(reasons ...string) *corev1.Event {
	for _, warning := range m.Warnings() {
		if len(reasons) == 0 || slices.Contains(reasons, warning.Reason) {
			return warning
		}
	}
	return nil
}

// Foremost is the most useful of the Warnings: the newest, or the cause if that
// only reports silence. It is nil if there is none.
func (m *Member) Foremost() *corev1.Event {
	newest := m.Warning()
	if newest == nil || newest.Reason != memberstate.EventMemberStale && newest.Reason != memberstate.EventMemberGone {
		return newest
	}
	return cmp.Or(m.Warning(memberstate.EventMemberCredentialInvalid, memberstate.EventMemberUnreachable), newest)
}

// corrected reports whether an Event is about an id that the member no longer has.
// The controller resolves such an Event if the cluster changes its id, but not if
// the label of the Secret changes.
func (m *Member) corrected(event *corev1.Event) bool {
	if event.Reason != memberstate.EventMemberIdentityMismatch || !strings.Contains(event.Message, member.CallsItself) {
		return false
	}
	return !strings.Contains(event.Message, member.SecretSays(m.ID)) || m.Holder() == m.ID
}

// Holder is the id of the cluster that the credential refers to, empty if unknown.
func (m *Member) Holder() string {
	if m.Heartbeat == nil {
		return ""
	}
	return ptr.Deref(m.Heartbeat.Spec.HolderIdentity, "")
}

// Drained reports whether an annotation demotes the endpoints of the member.
func (m *Member) Drained() bool {
	return m.Secret != nil && m.Secret.Annotations[memberstate.AnnotationDrain] == "true"
}

// Heard is when the last heartbeat arrived by the clock of this cluster, zero if
// none did. Of a fresh member it may be early by a third of --stale-after, or by a
// second for each member.
func (m *Member) Heard() time.Time {
	if m.Lease == nil || m.Lease.Spec.RenewTime == nil {
		return time.Time{}
	}
	return m.Lease.Spec.RenewTime.Time
}

// askTimeout bounds the requests to one member.
const askTimeout = 5 * time.Second

// Ask reads what the members of a cluster publish in a namespace, or in all if it
// is empty: from the facts of the member, or else with its credential, as the
// controller does.
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
		group.Go(func() { m.ask(ctx, f.Set, namespace) })
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

// Identify reads unknown heartbeats with the credential of each member, whose API
// server may be unreachable from here.
func (f *Facts) Identify(ctx context.Context) {
	var group sync.WaitGroup
	for i := range f.Members {
		m := &f.Members[i]
		if m.Heartbeat != nil || m.Secret == nil || m.unusable() {
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

// Origin names the object or file that makes the cluster a member, empty if a flag does or if that is unknown.
func (m *Member) Origin() string {
	if m.Lease == nil {
		return ""
	}
	if _, kind, name := memberstate.ParseOrigin(m.Lease.Annotations[memberstate.OriginAnnotation]); kind != "" {
		return kind + " " + name
	}
	return ""
}

func (m *Member) ask(ctx context.Context, set export.Set, namespace string) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	switch {
	case m.Secret == nil && m.Origin() != "":
		m.Unread = fmt.Errorf("its credential is of %s, which only the controller reads", m.Origin())
		return
	case m.Secret == nil:
		m.Unread = errors.New("there is no credential to read it")
		return
	case m.unusable():
		m.Unread = m.Refused
		return
	}
	by, err := m.open()
	if err == nil {
		var list *discoveryv1.EndpointSliceList
		list, err = by.Kube.DiscoveryV1().EndpointSlices(namespace).List(ctx,
			metav1.ListOptions{LabelSelector: export.LabelSourceCluster + "=" + m.ID + "," + set.Selector()})
		if err == nil {
			m.Published = pointers(list.Items)
			err = m.identify(ctx, by)
		}
	}
	if err != nil {
		m.Unread = errors.New(strings.TrimSuffix(err.Error(), "\n"))
	}
}
