// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/rotation"
)

// Kinds of credentials that Join can issue.
const (
	// KindAuto is KindRenewed if both clusters support it, else KindToken.
	KindAuto = "auto"
	// KindRenewed is a token that the controller of the cluster that is read renews.
	KindRenewed = "renewed"
	// KindToken is a token that another Join renews.
	KindToken = "token"
)

// Kinds are all of them.
var Kinds = []string{KindAuto, KindRenewed, KindToken}

// choose returns whether the reader gets a token that the source renews, with its lifetime, and says why. It returns an
// error if the options require such a token and a cluster does not support it.
func (o Options) choose(ctx context.Context, l *peering) (renewed bool, lifetime time.Duration, err error) {
	if o.Kind == KindToken || o.Duration == 0 && o.Kind != KindRenewed {
		return false, 0, nil
	}
	lifetime, missing, err := renews(ctx, l)
	switch {
	case err != nil:
		return false, 0, err
	case missing == "":
		o.Teller.Say("%s reads %s with a token that the controller of %s renews", l.readerID, l.sourceID, l.sourceID)
		return true, lifetime, nil
	case o.Kind == KindRenewed:
		return false, 0, fmt.Errorf("%s cannot read %s with a renewed token: %s", l.readerID, l.sourceID, missing)
	}
	return false, 0, nil
}

// projected returns the audience of the token of the kubelet with which the reader's Deployment reads the source, empty
// for none. Without the right to read the Deployment, there is none.
func projected(ctx context.Context, l *peering) string {
	deployment, err := l.reader.Kube.AppsV1().Deployments(l.reader.Namespace).Get(ctx, ControllerName, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	pod := deployment.Spec.Template.Spec
	named := false
	for i := range pod.Containers {
		for _, argument := range pod.Containers[i].Args {
			named = named || strings.HasPrefix(argument, "--member="+l.sourceID+"=")
		}
	}
	for i := range pod.Volumes {
		if !named || pod.Volumes[i].Projected == nil {
			continue
		}
		for _, source := range pod.Volumes[i].Projected.Sources {
			if token := source.ServiceAccountToken; token != nil && token.Path == l.sourceID {
				return token.Audience
			}
		}
	}
	return ""
}

// renews returns the lifetime of the tokens that the source renews for the reader, or what is missing for that.
func renews(ctx context.Context, l *peering) (lifetime time.Duration, missing string, err error) {
	for _, each := range []struct {
		c  *cluster.Cluster
		id string
	}{{l.source, l.sourceID}, {l.reader, l.readerID}} {
		lease, err := each.c.Kube.CoordinationV1().Leases(each.c.Namespace).Get(ctx, member.HeartbeatLease, metav1.GetOptions{})
		if err != nil {
			return 0, "", fmt.Errorf("context %s: read the heartbeat: %w", each.c.Context, err)
		}
		requested, err := time.ParseDuration(lease.Annotations[rotation.HeartbeatAnnotation])
		if err != nil || requested < rotation.MinLifetime {
			return 0, "the controller of " + each.id + " does not renew tokens: set --renew-tokens (value controller.renewTokens)", nil //nolint:nilerr // it is why, and no error
		}
		if each.c == l.source {
			lifetime = requested
		}
	}
	name := rotation.Account(l.readerID)
	account, err := l.source.Kube.CoreV1().ServiceAccounts(l.source.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && account.Labels[rotation.ReaderLabel] != l.readerID:
		return 0, fmt.Sprintf("%s has no ServiceAccount %s for it: add %s to the value tokenReaders", l.sourceID, name,
			l.readerID), nil
	case err != nil:
		return 0, "", fmt.Errorf("context %s: %w", l.source.Context, err)
	}
	return lifetime, "", nil
}

// revokeAccounts deletes the ServiceAccount of a reader, or those of all readers if it is empty, which revokes their
// tokens. It returns their number.
func revokeAccounts(ctx context.Context, of *cluster.Cluster, reader string, dryRun []string) (int, error) {
	accounts := of.Kube.CoreV1().ServiceAccounts(of.Namespace)
	list, err := accounts.List(ctx, metav1.ListOptions{LabelSelector: rotation.ReaderLabel})
	if err != nil {
		return 0, fmt.Errorf("context %s: list the ServiceAccounts of readers: %w", of.Context, err)
	}
	count := 0
	for i := range list.Items {
		id := list.Items[i].Labels[rotation.ReaderLabel]
		if reader != "" && id != reader || list.Items[i].Name != rotation.Account(id) {
			continue
		}
		if err := accounts.Delete(ctx, list.Items[i].Name, metav1.DeleteOptions{DryRun: dryRun}); err != nil {
			return count, fmt.Errorf("context %s: revoke the tokens of %s: %w", of.Context, id, err)
		}
		count++
	}
	return count, nil
}

// issueRenewed creates the first token of the ServiceAccount of a reader. Nothing but its deletion revokes it.
func (i Issuer) issueRenewed(ctx context.Context, reader string) (Credential, error) {
	made, token := Credential{}, "dry-run"
	if i.DryRun == nil {
		issued, err := i.Of.Kube.CoreV1().ServiceAccounts(i.Of.Namespace).CreateToken(ctx, rotation.Account(reader),
			&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
				ExpirationSeconds: ptr.To(int64(i.Duration / time.Second)),
			}}, metav1.CreateOptions{})
		if err != nil {
			return made, fmt.Errorf("context %s: create a token for %s: %w", i.Of.Context, reader, err)
		}
		token, made.Expires = issued.Status.Token, issued.Status.ExpirationTimestamp.Time
		if err := i.tried(ctx, token, reader); err != nil {
			return made, err
		}
	}
	var err error
	if made.Kubeconfig, err = i.kubeconfig(ctx, token); err != nil {
		return made, fmt.Errorf("context %s: %w", i.Of.Context, err)
	}
	return made, nil
}
