// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// identify identifies the clusters of the options, and reports whether the cluster with an id is among them. Names of contexts do
// not count: one may be the id of a lost cluster. It is an error if id can be no id, so that selectors may have it.
func (o Options) identify(ctx context.Context, id string) (selected bool, err error) {
	if err := cluster.Identify(ctx, o.Clusters); err != nil {
		return false, fmt.Errorf("nothing was changed: %w; leave an unreachable cluster out of --contexts", err)
	}
	if len(validation.IsValidLabelValue(id)) > 0 {
		return false, unknown(id)
	}
	return slices.ContainsFunc(o.Clusters, func(c *cluster.Cluster) bool { return c.ID == id }), nil
}

// unknown is the error for an id that no cluster has.
func unknown(id string) error {
	return fmt.Errorf("%s: no selected cluster and no member of one has this id; `kubectl clusterset status` lists the ids", id)
}

// Leave removes the cluster with an id from the clusters of the options, and returns when everything imported from
// it is deleted. The cluster itself, if it is among them, loses all members. Other members of these clusters that are not among
// the options are unchanged, and named in an error. Leave changes nothing if something else than a Secret makes one of the clusters
// a member.
func Leave(ctx context.Context, o Options, id string) error {
	found, err := o.identify(ctx, id)
	if err != nil {
		return err
	}
	for _, c := range o.Clusters {
		waiting, err := remains(ctx, c, id)
		if err != nil {
			return fmt.Errorf("nothing was changed: %w", err)
		}
		found = found || waiting != "" // even without a Secret, if Leave was interrupted before
	}
	others, options := map[string]bool{id: true}, metav1.DeleteOptions{DryRun: cluster.DryRun(o.DryRun)}
	for _, c := range o.Clusters {
		secrets, err := c.Credentials(ctx, "")
		if err != nil {
			return err
		}
		for i := range secrets {
			member := secrets[i].Labels[cluster.ClusterLabel]
			others[member] = true
			if c.ID != id && member != id {
				continue
			}
			if err := c.Kube.CoreV1().Secrets(c.Namespace).Delete(ctx, secrets[i].Name, options); err != nil {
				return fmt.Errorf("context %s: %w", c.Context, err)
			}
			o.Teller.Wrote(o.DryRun, "%s: %s is no longer a member", c.ID, member)
			found = true
		}
		accounts := c.Kube.CoreV1().ServiceAccounts(c.Namespace)
		readers, err := accounts.List(ctx, metav1.ListOptions{LabelSelector: cluster.ReaderLabel})
		if err != nil {
			return fmt.Errorf("context %s: ServiceAccounts of readers: %w", c.Context, err)
		}
		for i := range readers.Items {
			reader := readers.Items[i].Labels[cluster.ReaderLabel]
			if c.ID != id && reader != id || readers.Items[i].Name != cluster.Account(reader) {
				continue
			}
			if err := accounts.Delete(ctx, readers.Items[i].Name, options); err != nil {
				return fmt.Errorf("context %s: revoke the tokens of %s: %w", c.Context, reader, err)
			}
			o.Teller.Wrote(o.DryRun, "%s: revoked the tokens of %s", c.ID, reader)
			found = true
		}
	}
	if !found {
		return unknown(id)
	}
	for _, c := range o.Clusters {
		delete(others, c.ID)
	}
	if !o.DryRun {
		err = o.await(ctx, len(o.Clusters), func(ctx context.Context, i int) (string, error) {
			return remains(ctx, o.Clusters[i], id)
		})
	}
	left := strings.Join(slices.Sorted(maps.Keys(others)), ", ")
	switch delete(others, id); {
	case len(others) > 0:
		err = errors.Join(err, fmt.Errorf("not selected, and unchanged: %s: to remove %s there, too, run this command with their "+
			"contexts", left, id))
	case left != "":
		o.Teller.Say("Not selected, and unchanged: %s. To revoke its credentials for other clusters there, run this command with its "+
			"context", left)
	}
	return err
}

// remains returns what is still to be deleted in a cluster, or an empty text. It is an error if an inventory makes a cluster a
// member, which Leave cannot change.
func remains(ctx context.Context, c *cluster.Cluster, id string) (string, error) {
	leases, published := cluster.ClusterLabel+"="+id, cluster.SourceLabel+"="+id
	if c.ID == id {
		leases, published = cluster.ClusterLabel, cluster.SourceLabel+"!="+id+","+cluster.SourceLabel
	}
	copies, err := c.Kube.DiscoveryV1().EndpointSlices("").List(ctx,
		metav1.ListOptions{LabelSelector: published + "," + cluster.ManagedSlices})
	states, failed := c.Kube.CoordinationV1().Leases(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: leases})
	if err = errors.Join(err, failed); err != nil {
		return "", fmt.Errorf("context %s: %w", c.Context, err)
	}
	for i := range states.Items {
		made := states.Items[i].Annotations[cluster.OriginAnnotation]
		if !strings.HasPrefix(made, "- ") { // not a Secret
			return "", fmt.Errorf("context %s: %s is a member by %s: change that first", c.Context,
				states.Items[i].Labels[cluster.ClusterLabel], made)
		}
	}
	if len(copies.Items)+len(states.Items) == 0 {
		return "", nil
	}
	return fmt.Sprintf("waiting for the controller of %s to delete %d EndpointSlices and %d Leases", c.ID,
		len(copies.Items), len(states.Items)), nil
}

// Drain makes all clusters demote the endpoints of the cluster with an id, or reverts that. If the cluster is one of
// the options, its heartbeat says so. Otherwise annotations of its Secrets in the other clusters say so, or of what else makes it a
// member, which users annotate themselves. Drain returns when the controllers of the options have seen that.
func Drain(ctx context.Context, o Options, id string, drain bool) error {
	selected, err := o.identify(ctx, id)
	if err != nil {
		return err
	}
	value, done := `"true"`, "drained"
	if !drain {
		value, done = "null", "not drained"
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, cluster.DrainAnnotation, value)
	options := metav1.PatchOptions{FieldManager: cluster.FieldManager, DryRun: cluster.DryRun(o.DryRun)}
	found := selected
	for _, c := range o.Clusters {
		if c.ID == id {
			if _, err := c.Kube.CoreV1().Namespaces().Patch(ctx, c.Namespace, types.MergePatchType, patch, options); err != nil {
				return fmt.Errorf("context %s: %w", c.Context, err)
			}
			o.Teller.Wrote(o.DryRun, "%s is %s", id, done)
			continue
		}
		if drain && selected {
			continue // it learns that from the heartbeat
		}
		lease, err := leaseOf(ctx, c, id)
		if err != nil {
			return err
		}
		secrets, err := c.Credentials(ctx, id)
		if err != nil {
			return err
		}
		found = found || lease.Name != "" || len(secrets) > 0
		for j := range secrets {
			if !drain && secrets[j].Annotations[cluster.DrainAnnotation] == "" {
				continue
			}
			if _, err := c.Kube.CoreV1().Secrets(c.Namespace).Patch(ctx, secrets[j].Name, types.MergePatchType, patch,
				options); err != nil {
				return fmt.Errorf("context %s: %w", c.Context, err)
			}
			o.Teller.Wrote(o.DryRun, "%s: the endpoints of %s are %s", c.ID, id, done)
		}
	}
	if !found {
		return unknown(id)
	}
	if o.DryRun {
		return nil
	}
	return o.await(ctx, len(o.Clusters), func(ctx context.Context, i int) (string, error) {
		is, err := o.Clusters[i].State(ctx)
		if err != nil {
			return fmt.Sprintf("context %s: %v", o.Clusters[i].Context, err), nil
		}
		waiting := fmt.Sprintf("waiting for the controller of %s to see that %s is %s", o.Clusters[i].ID, id, done)
		at := slices.IndexFunc(is.Members, func(m state.Member) bool { return m.Cluster == id && m.Drained != drain })
		switch {
		case at >= 0:
			return fmt.Sprintf("%s, by its heartbeat or the annotation %s of %s", waiting, cluster.DrainAnnotation, is.Members[at].Credential), nil
		case is.Cluster == id && is.Drained != drain:
			return waiting, nil
		}
		return "", nil
	})
}
