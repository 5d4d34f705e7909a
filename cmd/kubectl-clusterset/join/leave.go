// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
)

// errNotFound is of a cluster that none of the contexts knows.
var errNotFound = errors.New("it is neither one of the clusters of the contexts nor a member of one")

// target is the id of a cluster that is named by its id or by a context.
func target(name string, clusters []*cluster.Cluster, identities []cluster.Identity) string {
	for _, identity := range identities {
		if identity.ID == name {
			return name
		}
	}
	for i, c := range clusters {
		if c.Context == name {
			return identities[i].ID
		}
	}
	return name
}

// complete returns an error if a cluster, given by its id, has members or is one
// whose contexts are not among those of the options: they would go on as before.
// A cluster that is no member is left to the caller.
func (o Options) complete(ctx context.Context, id string, identities []cluster.Identity) error {
	if o.Partial {
		return nil
	}
	named, members := map[string]bool{}, map[string]bool{}
	for _, identity := range identities {
		named[identity.ID] = true
	}
	for i, c := range o.Clusters {
		secrets, err := c.Credentials(ctx, "")
		if err != nil {
			return err
		}
		for j := range secrets {
			members[secrets[j].Labels[member.ClusterLabel]] = true
		}
		members[identities[i].ID] = true
	}
	if !members[id] {
		return nil
	}
	var missing []string
	for _, other := range slices.Sorted(maps.Keys(members)) {
		if !named[other] {
			missing = append(missing, other)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("nothing was changed: the set also has %s, not reached by any of the selected contexts: select the contexts of all clusters of the set with --contexts, or change only the selected clusters with --partial",
		strings.Join(missing, ", "))
}

// Leave takes a cluster, named by id or context, out of the set as the clusters
// of the options have it, and returns once nothing that came of it is left in
// them. A cluster of the options that is the one that leaves loses all members.
func Leave(ctx context.Context, o Options, name string) error {
	identities, err := identify(ctx, o.Clusters)
	if err != nil {
		return err
	}
	if err := cluster.Distinct(o.Clusters, identities); err != nil {
		return err
	}
	id := target(name, o.Clusters, identities)
	if err := o.complete(ctx, id, identities); err != nil {
		return err
	}
	found := false
	for i, c := range o.Clusters {
		member, reader := id, id
		if identities[i].ID == id {
			member, reader, found = "", "", true
		}
		deleted, err := o.forget(ctx, c, identities[i].ID, member)
		if err != nil {
			return err
		}
		found = found || deleted > 0
		revoked, err := Revoke(ctx, c, reader, "", o.dryRun())
		if err != nil {
			return err
		}
		if revoked > 0 {
			o.did("%s: revoked %d credentials by which it was read", identities[i].ID, revoked)
		}
		found = found || revoked > 0
	}
	if !found {
		return fmt.Errorf("%s: %w: name clusters of its set with --contexts", name, errNotFound)
	}
	if o.DryRun {
		return nil
	}
	return o.Teller.Wait(ctx, func(ctx context.Context) (string, error) {
		var left []string
		for i, c := range o.Clusters {
			why, err := remains(ctx, c, identities[i].ID, id)
			if err != nil {
				return "", err
			}
			if why != "" {
				left = append(left, why)
			}
		}
		return strings.Join(left, "; "), nil
	})
}

// forget deletes the Secrets of a member, of all where it is empty.
func (o Options) forget(ctx context.Context, c *cluster.Cluster, own, id string) (int, error) {
	secrets, err := c.Credentials(ctx, id)
	if err != nil {
		return 0, err
	}
	for i := range secrets {
		if err := c.Kube.CoreV1().Secrets(c.Namespace).Delete(ctx, secrets[i].Name,
			metav1.DeleteOptions{DryRun: o.dryRun()}); err != nil {
			return i, fmt.Errorf("context %s: %w", c.Context, err)
		}
		o.did("%s: %s is no member any more", own, secrets[i].Labels[member.ClusterLabel])
	}
	return len(secrets), nil
}

// remains says what is left in a cluster of what came of the one that left.
func remains(ctx context.Context, c *cluster.Cluster, own, id string) (string, error) {
	leases, published := member.ClusterLabel+"="+id, export.LabelSourceCluster+"="+id
	if own == id {
		leases, published = member.ClusterLabel, export.LabelSourceCluster+"!="+id+","+export.LabelSourceCluster
	}
	published += "," + export.LabelSliceManagedBy + "=" + export.Manager
	copies, err := c.Kube.DiscoveryV1().EndpointSlices("").List(ctx, metav1.ListOptions{LabelSelector: published})
	if err != nil {
		return "", fmt.Errorf("context %s: %w", c.Context, err)
	}
	states, err := c.Kube.CoordinationV1().Leases(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: leases})
	if err != nil {
		return "", fmt.Errorf("context %s: %w", c.Context, err)
	}
	if len(copies.Items)+len(states.Items) == 0 {
		return "", nil
	}
	return fmt.Sprintf("the controller of %s has to remove %d EndpointSlices and %d Leases", own, len(copies.Items),
		len(states.Items)), nil
}

// Drain asks the clusters of the options to use the endpoints of a cluster,
// named by id or context, only where no other has a ready one; or takes that
// back.
func Drain(ctx context.Context, o Options, name string, drain bool) error {
	identities, err := identify(ctx, o.Clusters)
	if err != nil {
		return err
	}
	id := target(name, o.Clusters, identities)
	if err := o.complete(ctx, id, identities); err != nil {
		return err
	}
	value := any("true")
	done := "drained"
	if !drain {
		value, done = nil, "not drained any more"
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{memberstate.AnnotationDrain: value}}})
	if err != nil {
		return err
	}
	options := metav1.PatchOptions{FieldManager: manager, DryRun: o.dryRun()}
	found := false
	for i, c := range o.Clusters {
		own := identities[i].ID
		if own == id {
			if _, err := c.Kube.CoreV1().Namespaces().Patch(ctx, c.Namespace, types.MergePatchType, patch,
				options); err != nil {
				return fmt.Errorf("context %s: %w", c.Context, err)
			}
			o.did("%s: its own endpoints are %s", own, done)
			found = true
			continue
		}
		secrets, err := c.Credentials(ctx, id)
		if err != nil {
			return err
		}
		for j := range secrets {
			if _, err := c.Kube.CoreV1().Secrets(c.Namespace).Patch(ctx, secrets[j].Name, types.MergePatchType, patch,
				options); err != nil {
				return fmt.Errorf("context %s: %w", c.Context, err)
			}
			o.did("%s: the endpoints of %s are %s", own, id, done)
			found = true
		}
	}
	if !found {
		return fmt.Errorf("%s: %w: name clusters of its set with --contexts", name, errNotFound)
	}
	return nil
}
