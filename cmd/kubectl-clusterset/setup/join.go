// SPDX-License-Identifier: Apache-2.0

// Package setup sets up a cluster set: it issues the credentials with which clusters read each other, revokes them, and
// has the CoreDNS of a cluster, as kubeadm installs it, forward the zone of the set to the CoreDNS of the chart.
//
// A credential is a token of a ServiceAccount in the cluster that is read, one
// for each reader, so that deleting that account revokes it and no other. The
// controller of the reader renews it.
package setup

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

// ControllerName is the name of the controller's Deployment, and of its ServiceAccount.
const ControllerName = "clusterset-controller"

// Options are the options of Join, Leave and Drain.
type Options struct {
	// Clusters are the selected clusters, for Join two or more.
	Clusters []*cluster.Cluster
	// Servers are addresses of API servers for the other clusters, by context. The
	// default is the address in the Secret, or else in the kubeconfig.
	Servers map[string]string
	DryRun  bool
	Teller  cluster.Teller
}

// A peering is one direction of a join: reader reads source.
type peering struct {
	Options
	reader, source *cluster.Cluster
	// ranges confine the endpoints of the source; unconfined is why they are unknown.
	ranges     []netip.Prefix
	unconfined error
	// secret is the reader's Secret with the credential, empty if it does not exist yet.
	secret *corev1.Secret
	// before is when the first heartbeat arrived with the credential that the new one replaces.
	before *metav1.MicroTime
	done   bool
}

// Join joins each of the clusters with every other one, and returns when each receives heartbeats with its new credentials.
// After an error, its changes stay, and another Join continues.
// Join usually follows the installation, so it waits for the first heartbeats of the controllers.
func Join(ctx context.Context, o Options) error {
	for _, c := range o.Clusters {
		if c.Config.Insecure { // another server could give its own authority, and read the tokens
			return fmt.Errorf("context %s: your kubeconfig has insecure-skip-tls-verify, so the API server may be another; nothing was "+
				"changed: set the certificate-authority of the cluster in your kubeconfig", c.Context)
		}
	}
	err := o.Teller.Wait(ctx, func(ctx context.Context) (string, error) {
		err := cluster.Identify(ctx, o.Clusters)
		if errors.Is(err, cluster.ErrNeverRan) {
			return err.Error(), nil
		}
		return "", err
	})
	if err != nil {
		return err
	}
	var peerings []*peering
	for _, source := range o.Clusters {
		if o.Servers[source.Context] == "" && loopback(source.Config.Host) {
			o.Teller.Say("context %s: %s is a loopback address, which other machines cannot reach. If the other clusters need "+
				"another address, set --server %[1]s=https://…", source.Context, source.Config.Host)
		}
		exposed := slices.ContainsFunc(o.Clusters, func(reader *cluster.Cluster) bool { return reader.Network != source.Network })
		ranges, unconfined := confinement(ctx, source, exposed)
		for _, reader := range o.Clusters {
			if reader == source {
				continue
			}
			lease, err := leaseOf(ctx, reader, source.ID)
			if err != nil {
				return err
			}
			p := &peering{
				Options: o, reader: reader, source: source, ranges: ranges, unconfined: unconfined, before: lease.Spec.RenewTime,
			}
			if err := p.give(ctx); err != nil {
				return err
			}
			peerings = append(peerings, p)
		}
	}
	if o.DryRun {
		return nil
	}
	return o.await(ctx, len(peerings), func(ctx context.Context, i int) (string, error) { return peerings[i].look(ctx) })
}

// give issues a credential and writes it to the Secret that makes the source a member of the reader. A credential that the
// source rejects replaces none.
func (p *peering) give(ctx context.Context) error {
	existing, err := p.reader.Credentials(ctx, p.source.ID)
	if err != nil {
		return err
	}
	name := "member-" + p.source.ID
	switch {
	case len(existing) > 1:
		return fmt.Errorf("context %s: %d Secrets are credentials of %s: delete all but that of the Lease %s%s "+
			"(annotation %s)", p.reader.Context, len(existing), p.source.ID, cluster.MemberLease, p.source.ID, cluster.OriginAnnotation)
	case len(existing) == 1:
		p.secret, name = &existing[0], existing[0].Name
	default:
		p.secret = &corev1.Secret{}
		_, err := p.reader.Kube.CoreV1().Secrets(p.reader.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			err = fmt.Errorf("it has not the label %s=%s: delete it, or correct the label", cluster.ClusterLabel, p.source.ID)
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("context %s: Secret %s: %w", p.reader.Context, name, err)
		}
	}
	cidrs := confined(p.secret.Annotations[cluster.CIDRsAnnotation], p.ranges)
	if cidrs == "" {
		p.Teller.Say("context %s: %s accepts any address from %s, and does not probe its pods, because %v: `kubectl --context %[1]s "+
			"-n %[5]s annotate secret %s %s=<ranges of its pods>`", p.reader.Context, p.reader.ID, p.source.ID, p.unconfined,
			p.reader.Namespace, name, cluster.CIDRsAnnotation)
	}
	kubeconfig, expires, err := p.issue(ctx, p.reach())
	if err != nil {
		return fmt.Errorf("context %s: a credential for %s: %w", p.source.Context, p.reader.ID, err)
	}
	secret := applycorev1.Secret(name, p.reader.Namespace).WithLabels(map[string]string{cluster.ClusterLabel: p.source.ID}).
		WithData(map[string][]byte{cluster.KubeconfigKey: kubeconfig})
	if cidrs != "" {
		secret.WithAnnotations(map[string]string{cluster.CIDRsAnnotation: cidrs})
	}
	p.secret, err = p.reader.Kube.CoreV1().Secrets(p.reader.Namespace).Apply(ctx, secret, p.apply())
	if err != nil {
		return fmt.Errorf("context %s: write the credential for %s: %w", p.reader.Context, p.source.ID, err)
	}
	err = p.allow(ctx, p.reader, grant{
		name: "clusterset-renew-" + name, account: ControllerName, kind: "Secret", owner: p.secret, verb: "update",
		labels: map[string]string{cluster.ClusterLabel: p.source.ID, cluster.ManagedByLabel: cluster.FieldManager}, resource: "secrets",
	})
	if err != nil {
		return fmt.Errorf("context %s: allow the controller to renew the token for %s: %w", p.reader.Context, p.source.ID, err)
	}
	if p.DryRun {
		p.Teller.Did("%s would get a credential to read %s (dry run)", p.reader.ID, p.source.ID)
		return nil
	}
	p.Teller.Did("%s has a credential to read %s, which expires %s unless its controller renews it", p.reader.ID,
		p.source.ID, expires.UTC().Format(time.RFC3339))
	return nil
}

// leaseOf returns the Lease with which the controller of a cluster shows the state of a member; without a name if there is none.
func leaseOf(ctx context.Context, c *cluster.Cluster, id string) (*coordinationv1.Lease, error) {
	lease, err := c.Kube.CoordinationV1().Leases(c.Namespace).Get(ctx, cluster.MemberLease+id, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("context %s: %w", c.Context, err)
	}
	return lease, nil
}

// look returns why the reader has received no heartbeat with its new credential, or an empty text.
func (p *peering) look(ctx context.Context) (string, error) {
	if p.done {
		return "", nil
	}
	lease, err := leaseOf(ctx, p.reader, p.source.ID)
	if err != nil {
		return "", err
	}
	why, renewed := "the controller has not read the credential yet", lease.Spec.RenewTime
	switch state := lease.Annotations[cluster.StateAnnotation]; {
	case lease.Name == "":
	case state != "fresh":
		why = "it is " + state
	case renewed.Equal(p.before):
		why = "no heartbeat yet"
	default:
		p.done = true
		p.Teller.Did("%s receives heartbeats from %s", p.reader.ID, p.source.ID)
		return "", nil
	}
	return fmt.Sprintf("%s is waiting for heartbeats from %s: %s", p.reader.ID, p.source.ID, why), nil
}

// await waits until look returns an empty text for all indexes below n.
func (o Options) await(ctx context.Context, n int, look func(context.Context, int) (string, error)) error {
	return o.Teller.Wait(ctx, func(ctx context.Context) (string, error) {
		var waiting []string
		for i := range n {
			why, err := look(ctx, i)
			if err != nil {
				return "", err
			}
			if why != "" {
				waiting = append(waiting, why)
			}
		}
		return strings.Join(waiting, "; "), nil
	})
}
