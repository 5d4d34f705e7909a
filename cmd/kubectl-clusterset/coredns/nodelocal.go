// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/coredns/caddy/caddyfile"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

// Passes reports whether the Corefile of a cache in front of the cluster's DNS,
// such as NodeLocal DNSCache, sends queries for a zone there: the zone has a
// server block, or the one of the root zone forwards to the same servers as
// another one does.
func (c *Corefile) Passes(zone string) bool {
	block, own := c.blockOf(zone)
	if block == nil || own != "." {
		return block != nil
	}
	to := upstreams(block)
	return len(to) > 0 && slices.ContainsFunc(c.blocks, func(other caddyfile.ServerBlock) bool {
		return !slices.ContainsFunc(keysOf(other), isRoot) && slices.Equal(upstreams(&other), to)
	})
}

// Passing returns the server block that makes such a Corefile pass on a zone.
// Its addresses are those of the server block of the cluster's own zone.
func (c *Corefile) Passing(zone string) string {
	bind, to := "", "<address of the cluster's DNS>"
	if block := c.clusterBlock(); block != nil {
		to = strings.Join(upstreams(block), " ")
		for _, directive := range directives(block, "bind") {
			bind = "\n    bind " + strings.Join(arguments(directive), " ")
		}
	}
	return fmt.Sprintf(`%s:53 {
    errors
    cache {
        success 9984 5
        denial 9984 1
    }
    reload%s
    forward . %s {
        force_tcp
    }
}`, strings.TrimSuffix(zone, "."), bind, to)
}

// clusterBlock is the server block of the cluster's own zone: the first that forwards another zone than that of the root.
// It is nil if there is none.
func (c *Corefile) clusterBlock() *caddyfile.ServerBlock {
	at := slices.IndexFunc(c.blocks, func(block caddyfile.ServerBlock) bool {
		return !slices.ContainsFunc(keysOf(block), isRoot) && len(upstreams(&block)) > 0
	})
	if at < 0 {
		return nil
	}
	return &c.blocks[at]
}

// enableNodeLocal adds the server block of Passing to each NodeLocal DNSCache that does not pass the zone. Its pods reread
// the Corefile within minutes (the kubelet's interval, and that of the plugin reload).
func (c *change) enableNodeLocal(ctx context.Context) error {
	found, err := c.eachNodeLocal(ctx, func(corefile *Corefile) string {
		if corefile.Passes(c.Zone) {
			return corefile.String()
		}
		return strings.TrimRight(corefile.String(), "\n") + "\n" + marker(c.Zone) + "\n" + corefile.Passing(c.Zone) + "\n"
	})
	if err == nil && !found {
		return fmt.Errorf("namespace %s has no DaemonSet with label %s: run without --node-local", Namespace, NodeCaches)
	}
	return err
}

// disableNodeLocal removes what enableNodeLocal added.
func (c *change) disableNodeLocal(ctx context.Context) error {
	_, err := c.eachNodeLocal(ctx, func(corefile *Corefile) string {
		text, _ := corefile.withoutBlock(c.Zone)
		return text
	})
	if apierrors.IsForbidden(err) {
		return nil // then --node-local was never used
	}
	return err
}

// eachNodeLocal edits the Corefiles of NodeLocal DNSCache, and reports whether there are any.
func (c *change) eachNodeLocal(ctx context.Context, edit func(*Corefile) string) (found bool, err error) {
	caches, err := Caches(ctx, c.Cluster)
	if err != nil {
		return false, fmt.Errorf("looking for NodeLocal DNSCache: %w", err)
	}
	client := c.Cluster.Kube.CoreV1().ConfigMaps(Namespace)
	for _, cache := range caches {
		configMap := cache.ConfigMap
		corefile, err := cache.Corefile()
		if err != nil {
			return true, err
		}
		text, before := edit(corefile), configMap.Data[Key]
		if text == before {
			continue
		}
		configMap.Data[Key] = text
		options := metav1.UpdateOptions{FieldManager: cluster.FieldManager, DryRun: cluster.DryRun(c.DryRun)}
		updated, err := client.Update(ctx, configMap, options)
		if err != nil {
			return true, fmt.Errorf("ConfigMap %s/%s: %w", Namespace, configMap.Name, err)
		}
		c.undo = append(c.undo, func(ctx context.Context) error {
			updated.Data[Key] = before
			_, err := client.Update(ctx, updated, options)
			return err
		})
		c.Teller.Wrote(c.DryRun, "ConfigMap %s/%s changed; NodeLocal DNSCache rereads it within minutes", Namespace, configMap.Name)
	}
	return len(caches) > 0, nil
}

func isRoot(zone string) bool { return normal(zone) == "." }

// upstreams are the servers to which a block forwards all that it answers for.
func upstreams(block *caddyfile.ServerBlock) []string {
	for _, directive := range directives(block, ByForward) {
		if words := arguments(directive); len(words) > 1 && isRoot(words[0]) {
			return words[1:]
		}
	}
	return nil
}
