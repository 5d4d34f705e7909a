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
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/names"
)

// errNotFound is the error of an unknown cluster.
var errNotFound = errors.New("it is neither a selected cluster nor a member of one")

// target is the id of a cluster that is given by id or context.
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

// complete returns an error if the set of the cluster with an id has clusters that
// are not in the options. Unknown clusters are left to the caller.
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
			members[secrets[j].Labels[names.ClusterLabel]] = true
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
	return fmt.Errorf("nothing was changed: the set also has %s, not selected with --contexts: select all clusters of "+
		"the set, or change only the selected clusters with --partial",
		strings.Join(missing, ", "))
}

// Leave removes a cluster, given by id or context, from the clusters of the
// options, and returns when everything imported from it is deleted. The cluster
// itself, if it is among them, loses all members.
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
		deleted, err := o.forget(ctx, c, identities[i], member)
		if err != nil {
			return err
		}
		found = found || deleted > 0
		revoked, err := Revoke(ctx, c, reader, cluster.DryRun(o.DryRun))
		if err != nil {
			return err
		}
		if revoked > 0 {
			o.Teller.Wrote(o.DryRun, "%s: revoked %d credentials for reading it", identities[i].ID, revoked)
		}
		found = found || revoked > 0
	}
	if !found {
		return fmt.Errorf("%s: %w: select clusters of its set with --contexts", name, errNotFound)
	}
	if o.DryRun {
		return nil
	}
	return o.Teller.Wait(ctx, func(ctx context.Context) (string, error) {
		var left []string
		for i, c := range o.Clusters {
			why, err := remains(ctx, c, identities[i], id)
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

// forget deletes the Secrets of a member, or of all members if it is empty.
func (o Options) forget(ctx context.Context, c *cluster.Cluster, is cluster.Identity, id string) (int, error) {
	secrets, err := c.Credentials(ctx, id)
	if err != nil {
		return 0, err
	}
	for i := range secrets {
		if err := c.Kube.CoreV1().Secrets(c.Namespace).Delete(ctx, secrets[i].Name,
			metav1.DeleteOptions{DryRun: cluster.DryRun(o.DryRun)}); err != nil {
			return i, fmt.Errorf("context %s: %w", c.Context, err)
		}
		o.Teller.Wrote(o.DryRun, "%s: %s is no longer a member of %s", is.ID, secrets[i].Labels[names.ClusterLabel], is.Set)
	}
	return len(secrets), nil
}

// remains returns what is still to be deleted in a cluster, or an empty text.
func remains(ctx context.Context, c *cluster.Cluster, is cluster.Identity, id string) (string, error) {
	own := is.ID
	leases, published := names.ClusterLabel+"="+id, names.SourceCluster+"="+id
	if own == id {
		leases, published = names.ClusterLabel, names.SourceCluster+"!="+id+","+names.SourceCluster
	}
	published += "," + is.Set.Slices()
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
	return fmt.Sprintf("waiting for the controller of %s to delete %d EndpointSlices and %d Leases", own,
		len(copies.Items), len(states.Items)), nil
}

// Drain makes all clusters demote the endpoints of a cluster, given by id or context, or reverts that. The cluster says so
// in its heartbeat if it is one of the options. Otherwise the annotations of its Secrets say so in those clusters.
func Drain(ctx context.Context, o Options, name string, drain bool) error {
	identities, err := identify(ctx, o.Clusters)
	if err != nil {
		return err
	}
	id := target(name, o.Clusters, identities)
	value, done := any("true"), "drained"
	if !drain {
		value, done = nil, "no longer drained"
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{names.Drain: value},
	}})
	if err != nil {
		return err
	}
	options := metav1.PatchOptions{FieldManager: manager, DryRun: cluster.DryRun(o.DryRun)}
	at := slices.IndexFunc(identities, func(is cluster.Identity) bool { return is.ID == id })
	if at >= 0 {
		c := o.Clusters[at]
		if _, err := c.Kube.CoreV1().Namespaces().Patch(ctx, c.Namespace, types.MergePatchType, patch, options); err != nil {
			return fmt.Errorf("context %s: %w", c.Context, err)
		}
		o.Teller.Wrote(o.DryRun, "%s is %s in all clusters of %s", id, done, identities[at].Set)
		if drain {
			return nil
		}
	}
	found := at >= 0
	for i, c := range o.Clusters {
		if i == at {
			continue
		}
		secrets, err := c.Credentials(ctx, id)
		if err != nil {
			return err
		}
		for j := range secrets {
			found = true
			if !drain && secrets[j].Annotations[names.Drain] == "" {
				continue
			}
			if _, err := c.Kube.CoreV1().Secrets(c.Namespace).Patch(ctx, secrets[j].Name, types.MergePatchType, patch,
				options); err != nil {
				return fmt.Errorf("context %s: %w", c.Context, err)
			}
			o.Teller.Wrote(o.DryRun, "%s: the endpoints of %s are %s in %s", identities[i].ID, id, done, identities[i].Set)
		}
	}
	if !found {
		return fmt.Errorf("%s: %w: select its context with --contexts, or those of clusters that have a Secret of it", name,
			errNotFound)
	}
	return nil
}
