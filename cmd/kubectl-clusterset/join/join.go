// SPDX-License-Identifier: Apache-2.0

// Package join issues the credentials with which clusters read each other, and
// revokes them.
//
// A credential is a token of a ServiceAccount in the cluster that is read, one
// for each reader, so that deleting that account revokes it and no other. The
// controller of the reader renews it.
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
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/names"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/progress"
)

// Options are those of Join, Leave and Drain.
type Options struct {
	// Clusters are two or more.
	Clusters []*cluster.Cluster
	// Servers are addresses of API servers for the other clusters, by context. The
	// default is the address in the Secret, or else in the kubeconfig.
	Servers map[string]string
	// Authorities are CA certificates of these addresses in PEM, by context. The
	// default is that of the kubeconfig.
	Authorities map[string][]byte
	// Partial lets Leave change these clusters although the set has others.
	Partial bool
	DryRun  bool
	Teller  progress.Teller
}

// A peering is one direction of a join: reader reads source.
type peering struct {
	reader   *cluster.Cluster
	readerID string
	source   *cluster.Cluster
	sourceID string
	// set is that of both.
	set names.Set

	// secret is the reader's Secret with the credential, nil if there is none yet.
	secret *corev1.Secret
	// before is when the last heartbeat arrived before the new credential.
	before *metav1.MicroTime
	done   bool
}

// Join joins each of the clusters with every other one, and returns when each
// receives heartbeats with its new credentials. After an error, what was done
// stays, and another Join continues.
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
				return fmt.Errorf("--%s is set for context %s, which is not one of those to join", flag, context)
			}
		}
	}
	for i, c := range o.Clusters {
		if err := o.ensureRights(ctx, c, identities[i]); err != nil {
			return err
		}
	}
	var peerings []*peering
	for i, source := range o.Clusters {
		issuer := Issuer{
			Of: source, ID: identities[i].ID, Authority: o.Authorities[source.Context],
			DryRun: cluster.DryRun(o.DryRun), Teller: o.Teller,
		}
		if o.Servers[source.Context] == "" && Loopback(source.Config.Host) {
			o.Teller.Say("%s: %s is a loopback address, which other machines cannot reach. If the other clusters need "+
				"another address, set --server %s=https://…", issuer.ID, source.Config.Host, source.Context)
		}
		if proxy := own(source.Config).anonymous().Proxy; proxy != "" && o.Servers[source.Context] == "" {
			o.Teller.Say("%s: the other clusters use the proxy of your kubeconfig, %s, without a login. If they need none, set "+
				"--server %s=https://…", issuer.ID, proxy, source.Context)
		}
		for j, reader := range o.Clusters {
			if i == j {
				continue
			}
			l := &peering{
				reader: reader, readerID: identities[j].ID, source: source, sourceID: identities[i].ID, set: identities[i].Set,
			}
			if err := o.give(ctx, issuer, l); err != nil {
				return err
			}
			peerings = append(peerings, l)
		}
	}
	if o.DryRun {
		return nil
	}
	return o.await(ctx, peerings)
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

// ensureRights creates the account of members and its rights if anything is
// missing. Those of a named set come from its Helm release.
func (o Options) ensureRights(ctx context.Context, c *cluster.Cluster, is cluster.Identity) error {
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
	if is.Set != "" {
		// The manifest has the names of the default set, whose members would lose their rights.
		return fmt.Errorf("context %s: service account %s/%s lacks the permissions of a member: restore them with `helm "+
			"upgrade` of the Helm release of %s in namespace %s", c.Context, c.Namespace, manifest.MemberAccount, is.Set,
			c.Namespace)
	}
	if err := manifest.Apply(ctx, c.Dynamic, objects, manager, cluster.DryRun(o.DryRun)); err != nil {
		return fmt.Errorf("context %s: permissions of members: %w", c.Context, err)
	}
	o.Teller.Did("%s: granted service account %s the permissions of a member", is.ID, manifest.MemberAccount)
	return nil
}

// give issues a credential and writes it to the Secret of the reader.
func (o Options) give(ctx context.Context, issuer Issuer, l *peering) error {
	if audience := projected(ctx, l); audience != "" {
		o.Teller.Did("%s reads %s with a token that its kubelet renews, for the audience %s: no other is needed", l.readerID,
			l.sourceID, audience)
		return o.note(ctx, l)
	}
	existing, err := l.reader.Credentials(ctx, l.sourceID)
	if err != nil {
		return err
	}
	switch {
	case len(existing) > 1:
		return fmt.Errorf("context %s: %d Secrets are credentials of %s: delete all but that of the Lease %s%s "+
			"(annotation %s)", l.reader.Context, len(existing), l.sourceID, names.MemberLease, l.sourceID, names.Origin)
	case len(existing) == 1:
		l.secret = &existing[0]
	}
	issuer.Address = o.reach(l)
	credential, err := issuer.Issue(ctx, l.readerID)
	if err != nil {
		return err
	}
	if l.secret, err = o.put(ctx, l, credential); err != nil {
		return fmt.Errorf("context %s: write the credential of %s: %w", l.reader.Context, l.sourceID, err)
	}
	if err := o.allowRenewal(ctx, l); err != nil {
		return err
	}
	if err := o.note(ctx, l); err != nil {
		return err
	}
	if o.DryRun {
		o.Teller.Did("%s would get a credential to read %s in %s (dry run)", l.readerID, l.sourceID, l.set)
		return nil
	}
	o.Teller.Did("%s has a credential to read %s in %s, which expires %s unless its controller renews it", l.readerID,
		l.sourceID, l.set, credential.Expires.UTC().Format(time.RFC3339))
	return nil
}

// note notes when the last heartbeat arrived.
func (o Options) note(ctx context.Context, l *peering) error {
	lease, err := l.reader.MemberLease(ctx, names.MemberLease+l.sourceID)
	if err != nil {
		return fmt.Errorf("context %s: %w", l.reader.Context, err)
	}
	if lease != nil {
		l.before = lease.Spec.RenewTime
	}
	return nil
}

// put updates or creates the Secret that makes the source a member.
func (o Options) put(ctx context.Context, l *peering, credential Credential) (*corev1.Secret, error) {
	secrets := l.reader.Kube.CoreV1().Secrets(l.reader.Namespace)
	if l.secret == nil {
		created, err := secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Name:   "member-" + l.sourceID,
				Labels: map[string]string{names.ClusterLabel: l.sourceID, names.ManagedBy: manager},
			},
			Data: map[string][]byte{names.KubeconfigKey: credential.Kubeconfig},
		}, metav1.CreateOptions{FieldManager: manager, DryRun: cluster.DryRun(o.DryRun)})
		if apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("a Secret member-%s exists without the label %s=%s: delete it, or add the label: %w",
				l.sourceID, names.ClusterLabel, l.sourceID, err)
		}
		return created, err
	}
	patch, err := json.Marshal(map[string]any{"data": map[string][]byte{names.KubeconfigKey: credential.Kubeconfig}})
	if err != nil {
		return nil, err
	}
	return secrets.Patch(ctx, l.secret.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: manager, DryRun: cluster.DryRun(o.DryRun)})
}

// await waits until each reader has received a heartbeat with its new credential.
func (o Options) await(ctx context.Context, peerings []*peering) error {
	return o.Teller.Wait(ctx, func(ctx context.Context) (string, error) {
		var waiting []string
		for _, l := range peerings {
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
			o.Teller.Did("%s receives heartbeats from %s", l.readerID, l.sourceID)
		}
		return strings.Join(waiting, "; "), nil
	})
}

// look returns what the reader is waiting for, or an empty text.
func (l *peering) look(ctx context.Context) (string, error) {
	lease, err := l.reader.MemberLease(ctx, names.MemberLease+l.sourceID)
	if err != nil {
		return "", fmt.Errorf("context %s: %w", l.reader.Context, err)
	}
	why := "the controller has not read the credential yet"
	if lease != nil {
		renewed := lease.Spec.RenewTime
		heard := renewed != nil && (l.before == nil || renewed.After(l.before.Time))
		state := lease.Annotations[names.State]
		if heard && state == "fresh" {
			return "", nil
		}
		if why = "no heartbeat yet"; state != "fresh" {
			why = "it is " + state
		}
	}
	why = fmt.Sprintf("%s is waiting for heartbeats from %s: %s", l.readerID, l.sourceID, why)
	if l.secret == nil {
		return why, nil
	}
	if event, err := l.reader.NewestEvent(ctx, l.secret); err == nil && event != nil &&
		event.Type == corev1.EventTypeWarning {
		why += " (" + event.Message + ")"
	}
	return why, nil
}
