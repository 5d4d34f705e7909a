// SPDX-License-Identifier: Apache-2.0

// Package join gives clusters the credentials to read each other, and takes
// them back.
//
// A credential is a token of the service account clusterset-member of the
// cluster that is read. It is bound to a Secret there, one for each reader, so
// that deleting that Secret revokes it and no other.
package join

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/manifest"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/progress"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
)

// shortLife is a life of a token that nobody would choose: the API server did.
const shortLife = 30 * 24 * time.Hour

// Options say whom to join, and how.
type Options struct {
	// Clusters are two or more.
	Clusters []*cluster.Cluster
	// Servers are addresses of API servers, by context, as the others reach
	// them. Where none is given, the one in a Secret stays; where there is no
	// Secret, it is that of the kubeconfig.
	Servers map[string]string
	// Authorities are the certificates, in PEM, by which the others know an API
	// server, by context; those of the kubeconfig where none are given.
	Authorities map[string][]byte
	// Duration is how long a token lives; 0 means without an end.
	Duration time.Duration
	// Partial has Leave and Drain change these clusters although they have members
	// that are not among them.
	Partial bool
	DryRun  bool
	Teller  progress.Teller
}

func (o Options) dryRun() []string {
	if o.DryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// did tells what was done, or what would be.
func (o Options) did(format string, args ...any) {
	if o.DryRun {
		format += " (dry run)"
	}
	o.Teller.Did(format, args...)
}

// A link is one cluster that reads another.
type link struct {
	reader   *cluster.Cluster
	readerID string
	source   *cluster.Cluster
	sourceID string

	// secret is where the reader has the credential, nil as long as there is none.
	secret *corev1.Secret
	anchor string
	// before is when the source was heard last before the reader had the
	// credential.
	before *metav1.MicroTime
	done   bool
}

// Join joins each of the clusters with each other, and returns once each hears
// each other by the new credential. What fails leaves in place what was done:
// joining again goes on from there.
func Join(ctx context.Context, o Options) error {
	if err := o.awaitControllers(ctx); err != nil {
		return err
	}
	identities, err := identify(ctx, o.Clusters)
	if err != nil {
		return err
	}
	if err := cluster.Distinct(o.Clusters, identities); err != nil {
		return err
	}
	for flag, contexts := range map[string][]string{
		"server":                slices.Collect(maps.Keys(o.Servers)),
		"certificate-authority": slices.Collect(maps.Keys(o.Authorities)),
	} {
		for _, context := range contexts {
			if !hasContext(o.Clusters, context) {
				return fmt.Errorf("--%s names context %s, which is not one of those to join", flag, context)
			}
		}
	}
	for i, c := range o.Clusters {
		if err := o.ensureRights(ctx, c, identities[i].ID); err != nil {
			return err
		}
	}
	var links []*link
	for i, source := range o.Clusters {
		issuer := Issuer{
			Of: source, ID: identities[i].ID, Duration: o.Duration, Authority: o.Authorities[source.Context],
			DryRun: o.dryRun(), Teller: o.Teller,
		}
		if o.Servers[source.Context] == "" && loopback(source.Config.Host) {
			o.Teller.Say("%s: its address %s is a loopback address, which other machines cannot reach: where the others need another one, use --server %s=https://…", issuer.ID, source.Config.Host, source.Context)
		}
		for j, reader := range o.Clusters {
			if i == j {
				continue
			}
			l := &link{reader: reader, readerID: identities[j].ID, source: source, sourceID: identities[i].ID}
			if err := o.give(ctx, issuer, l); err != nil {
				return err
			}
			links = append(links, l)
		}
	}
	if o.DryRun {
		return nil
	}
	if err := o.await(ctx, links); err != nil {
		return err
	}
	for _, l := range links {
		revoked, err := Revoke(ctx, l.source, l.readerID, l.anchor, nil)
		if err != nil {
			return err
		}
		if revoked > 0 {
			o.Teller.Did("%s: revoked the credential by which %s read it before", l.sourceID, l.readerID)
		}
	}
	return nil
}

func identify(ctx context.Context, clusters []*cluster.Cluster) ([]cluster.Identity, error) {
	identities := make([]cluster.Identity, len(clusters))
	var wrong []error
	for i, c := range clusters {
		var err error
		identities[i], err = c.Identify(ctx)
		wrong = append(wrong, err)
	}
	return identities, errors.Join(wrong...)
}

func hasContext(clusters []*cluster.Cluster, context string) bool {
	for _, c := range clusters {
		if c.Context == context {
			return true
		}
	}
	return false
}

// ensureRights puts the account by which others read a cluster in place, where
// it lacks anything.
func (o Options) ensureRights(ctx context.Context, c *cluster.Cluster, id string) error {
	objects, err := manifest.OfMembers(c.Namespace)
	if err != nil {
		return err
	}
	required, err := manifest.Required(objects, manifest.MemberAccount)
	if err != nil {
		return err
	}
	missing, err := manifest.Missing(ctx, c.Kube, c.Namespace, manifest.MemberAccount, required)
	if err != nil {
		return fmt.Errorf("context %s: %w", c.Context, err)
	}
	_, err = c.Kube.CoreV1().ServiceAccounts(c.Namespace).Get(ctx, manifest.MemberAccount, metav1.GetOptions{})
	if err == nil && len(missing) == 0 {
		return nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("context %s: %w", c.Context, err)
	}
	if err := manifest.Apply(ctx, c.Dynamic, objects, manager, o.dryRun()); err != nil {
		return fmt.Errorf("context %s: the rights of members: %w", c.Context, err)
	}
	o.Teller.Did("%s: gave service account %s the rights of a member", id, manifest.MemberAccount)
	return nil
}

// give makes a credential and puts it where the reader's controller finds it.
func (o Options) give(ctx context.Context, issuer Issuer, l *link) error {
	existing, err := l.reader.Credentials(ctx, l.sourceID)
	if err != nil {
		return err
	}
	if len(existing) > 0 {
		l.secret = oldest(existing)
	}
	issuer.Address = o.reach(ctx, l)
	credential, err := issuer.Issue(ctx, l.readerID)
	if err != nil {
		return err
	}
	l.anchor = credential.Anchor
	if l.secret, err = o.put(ctx, l, credential); err != nil {
		return fmt.Errorf("context %s: write the credential of %s: %w", l.reader.Context, l.sourceID, err)
	}
	lease, err := l.reader.MemberLease(ctx, memberstate.LeasePrefix+l.sourceID)
	if err != nil {
		return fmt.Errorf("context %s: %w", l.reader.Context, err)
	}
	if lease != nil {
		l.before = lease.Spec.RenewTime
	}
	life := "does not end by itself"
	if !credential.Expires.IsZero() {
		left := credential.Expires.Sub(issuer.Of.Now())
		life = "ends " + credential.Expires.UTC().Format(time.RFC3339)
		if left < shortLife && issuer.Duration >= 2*left {
			life += fmt.Sprintf(", as its API server allows no longer than %s: join again before that, or use --long-lived", left.Round(time.Minute))
		}
	}
	if o.DryRun {
		o.Teller.Did("%s would get a credential to read %s (dry run)", l.readerID, l.sourceID)
		return nil
	}
	o.Teller.Did("%s has a credential of %s, which %s", l.readerID, l.sourceID, life)
	return nil
}

// put writes the Secret that makes the source a member: the one that does so
// already, or a new one.
func (o Options) put(ctx context.Context, l *link, credential Credential) (*corev1.Secret, error) {
	secrets := l.reader.Kube.CoreV1().Secrets(l.reader.Namespace)
	if l.secret == nil {
		created, err := secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Name:   "member-" + l.sourceID,
				Labels: map[string]string{member.ClusterLabel: l.sourceID, export.LabelManagedBy: manager},
			},
			Data: map[string][]byte{member.KubeconfigKey: credential.Kubeconfig},
		}, metav1.CreateOptions{FieldManager: manager, DryRun: o.dryRun()})
		if apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("there is a Secret member-%s without the label %s=%s: delete it, or give it the label: %w", l.sourceID, member.ClusterLabel, l.sourceID, err)
		}
		return created, err
	}
	patch, err := json.Marshal(map[string]any{"data": map[string][]byte{member.KubeconfigKey: credential.Kubeconfig}})
	if err != nil {
		return nil, err
	}
	return secrets.Patch(ctx, l.secret.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: manager, DryRun: o.dryRun()})
}

// oldest is the one that the controller uses.
func oldest(secrets []corev1.Secret) *corev1.Secret {
	first := &secrets[0]
	for i := range secrets[1:] {
		other := &secrets[i+1]
		if other.CreationTimestamp.Before(&first.CreationTimestamp) ||
			other.CreationTimestamp.Equal(&first.CreationTimestamp) && other.Name < first.Name {
			first = other
		}
	}
	return first
}

// await waits until each reader has heard its source since it has the
// credential.
func (o Options) await(ctx context.Context, links []*link) error {
	return o.Teller.Wait(ctx, func(ctx context.Context) (string, error) {
		var waiting []string
		for _, l := range links {
			if l.done {
				continue
			}
			why, err := l.look(ctx)
			if err != nil {
				return "", err
			}
			if why != "" {
				waiting = append(waiting, why)
				continue
			}
			l.done = true
			o.Teller.Did("%s hears %s", l.readerID, l.sourceID)
		}
		return strings.Join(waiting, "; "), nil
	})
}

// look says why the reader does not hear the source yet, nothing where it does.
func (l *link) look(ctx context.Context) (string, error) {
	lease, err := l.reader.MemberLease(ctx, memberstate.LeasePrefix+l.sourceID)
	if err != nil {
		return "", fmt.Errorf("context %s: %w", l.reader.Context, err)
	}
	why := "its controller has not taken it up"
	if lease != nil {
		renewed := lease.Spec.RenewTime
		heard := renewed != nil && (l.before == nil || renewed.After(l.before.Time))
		state := lease.Annotations[memberstate.StateAnnotation]
		if heard && state == liveness.Fresh.String() {
			return "", nil
		}
		if why = "no heartbeat yet"; state != liveness.Fresh.String() {
			why = "it is " + state
		}
	}
	why = fmt.Sprintf("%s has to hear %s: %s", l.readerID, l.sourceID, why)
	if event, err := l.reader.NewestEvent(ctx, l.secret); err == nil && event != nil &&
		event.Type == corev1.EventTypeWarning {
		why += " (" + event.Message + ")"
	}
	return why, nil
}
