// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/names"
)

// discoverTimeout bounds how long a cluster may take to say who it is.
const discoverTimeout = 5 * time.Second

// selectAll makes the contexts of all clusters of the set the selected ones, if
// --all-clusters is set.
func (o *options) selectAll(command *cobra.Command, _ []string) error {
	if !o.allClusters {
		return nil
	}
	if len(o.contexts) > 0 {
		return usageError{errors.New("--all-clusters and --contexts exclude each other")}
	}
	var single []string
	o.single.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed {
			single = append(single, "--"+flag.Name)
		}
	})
	if len(single) > 0 { // and would go to other clusters, too
		return usageError{fmt.Errorf("%s applies to one cluster, and --all-clusters selects more", single[0])}
	}
	contexts, err := o.discover(command.Context())
	if err != nil {
		return err
	}
	o.contexts = contexts
	o.teller().Say("Selected contexts: %s", strings.Join(contexts, ","))
	return nil
}

// discover returns the contexts of the clusters of a set: that of --context, and
// for each of its members one of the kubeconfig with the same UID of the
// namespace kube-system. It is an error if a member has none, or if the heartbeat
// of that cluster has another id: a member reports its UID itself, and must not
// select clusters that are not of the set.
func (o *options) discover(ctx context.Context) ([]string, error) {
	selected, err := o.names()
	if err != nil {
		return nil, err
	}
	clusters, err := o.open(selected)
	if err != nil {
		return nil, err
	}
	own := clusters[0]
	leases, err := own.Kube.CoordinationV1().Leases(own.Namespace).List(ctx,
		metav1.ListOptions{LabelSelector: names.ClusterLabel})
	if err != nil {
		return nil, fmt.Errorf("context %s: %w", own.Context, err)
	}
	if len(leases.Items) == 0 {
		return nil, fmt.Errorf("context %s: the cluster has no members, or its controller runs in another namespace than %s "+
			"(--system-namespace): select clusters with --contexts", own.Context, own.Namespace)
	}
	reached, err := o.reachable(ctx)
	if err != nil {
		return nil, err
	}
	contexts := []string{own.Context}
	var missing []string
	for i := range leases.Items {
		id := leases.Items[i].Labels[names.ClusterLabel]
		found, known := reached[leases.Items[i].Annotations[names.UID]]
		if !known {
			missing = append(missing, id)
			continue
		}
		if err := verify(ctx, found, id, own.Context); err != nil {
			return nil, err
		}
		if !slices.Contains(contexts, found.Context) {
			contexts = append(contexts, found.Context)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return nil, fmt.Errorf("no context of the kubeconfig reaches the members %s of context %s: add one, or select "+
			"clusters with --contexts", strings.Join(missing, ", "), own.Context)
	}
	slices.Sort(contexts[1:])
	return contexts, nil
}

// verify returns an error if a cluster is not the member of the cluster of context
// from that has the id.
func verify(ctx context.Context, found *cluster.Cluster, id, from string) error {
	ctx, cancel := context.WithTimeout(ctx, discoverTimeout)
	defer cancel()
	identity, err := found.Identify(ctx)
	if err != nil {
		return fmt.Errorf("member %s of context %s: %w", id, from, err)
	}
	if identity.ID != id {
		return fmt.Errorf("context %s: the cluster is %s, and member %s of context %s has its UID: select clusters with "+
			"--contexts", found.Context, identity.ID, id, from)
	}
	return nil
}

// reachable are the clusters of the kubeconfig by the UID of the namespace
// kube-system, with the first context by name of several for one cluster. Those
// that do not answer are left out.
func (o *options) reachable(ctx context.Context) (map[string]*cluster.Cluster, error) {
	raw, err := o.config().RawConfig()
	if err != nil {
		return nil, err
	}
	before := o.overrides.CurrentContext
	defer func() { o.overrides.CurrentContext = before }()
	var candidates []*cluster.Cluster
	for _, name := range slices.Sorted(maps.Keys(raw.Contexts)) {
		if found, err := o.open([]string{name}); err == nil {
			candidates = append(candidates, found...)
		}
	}
	uids := make([]string, len(candidates))
	var group sync.WaitGroup
	for i, c := range candidates {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, discoverTimeout)
			defer cancel()
			if namespace, err := c.Kube.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem,
				metav1.GetOptions{}); err == nil {
				uids[i] = string(namespace.UID)
			}
		})
	}
	group.Wait()
	reached := map[string]*cluster.Cluster{}
	for i, c := range candidates {
		if _, known := reached[uids[i]]; !known && uids[i] != "" {
			reached[uids[i]] = c
		}
	}
	return reached, nil
}
