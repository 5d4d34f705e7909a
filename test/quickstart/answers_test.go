// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/endpointslice/util"

	plugin "github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
)

// wanted returns the expected DNS records, or the name of a negative answer.
type wanted func(context.Context) ([]string, error)

// constant returns a fixed answer.
func constant(records ...string) wanted {
	return func(context.Context) ([]string, error) { return records, nil }
}

// importIPs returns the IPs of the import of shop/db.
func (c *cluster) importIPs(ctx context.Context) ([]string, error) {
	imports := c.Dynamic().Resource(
		schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: "v1beta1", Resource: "serviceimports"})
	found, err := imports.Namespace("shop").Get(ctx, "db", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	ips, _, err := unstructured.NestedStringSlice(found.Object, "spec", "ips")
	if err == nil && len(ips) == 0 {
		err = fmt.Errorf("the import in %s has no IPs", c.Name())
	}
	return ips, err
}

// pods returns the addresses of the ready pods that a selector selects in a namespace of these clusters.
func pods(namespace, selector string, clusters ...*cluster) wanted {
	return func(ctx context.Context) ([]string, error) {
		var found []string
		for _, c := range clusters {
			list, err := c.Client().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
			if err != nil {
				return nil, err
			}
			for i := range list.Items {
				if pod := &list.Items[i]; pod.DeletionTimestamp == nil && util.IsPodReady(pod) {
					found = append(found, pod.Status.PodIP)
				}
			}
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("no pod of %s is ready", selector)
		}
		return found, nil
	}
}

// expectAnswer queries all DNS pods of the cluster for the addresses of a name, until each returns the wanted answer.
func (c *cluster) expectAnswer(t testing.TB, name string, want wanted) {
	c.expectOf(t, pods(metav1.NamespaceSystem, plugin.DNSSelector, c), name, want)
}

// expectOf is like expectAnswer, but queries these servers.
func (c *cluster) expectOf(t testing.TB, servers wanted, name string, want wanted) {
	eventually(t, fmt.Sprintf("%s in %s", name, c.Name()), func(ctx context.Context) error {
		records, err := want(ctx)
		if err != nil {
			return err
		}
		addresses, err := servers(ctx)
		if err != nil {
			return err
		}
		for _, server := range addresses {
			answer, err := plugin.DNSAt(server).Ask(ctx, name, "A")
			if err != nil {
				return err
			}
			if text := sorted(records); answer.Text() != text {
				return fmt.Errorf("%s answers %q, want %q", server, answer.Text(), text)
			}
		}
		return nil
	})
}

// sorted returns records in the form of an answer.
func sorted(records []string) string { return strings.Join(slices.Sorted(slices.Values(records)), " ") }

// Marks of an endpoint behind an import.
const (
	used    = ""
	demoted = "~"
)

// expectEndpoints waits until the endpoints of shop/db in a cluster are the pods of the clusters in marks, each with
// its cluster's mark.
func (b *bed) expectEndpoints(t testing.TB, c *cluster, marks map[string]string) {
	eventually(t, "endpoints in "+c.Name(), func(ctx context.Context) error {
		var want []string
		for _, source := range b.clusters {
			mark, imported := marks[source.Name()]
			if !imported {
				continue
			}
			addresses, err := pods("shop", "app=db", source)(ctx)
			if err != nil {
				return err
			}
			for _, address := range addresses {
				want = append(want, source.Name()+"/"+address+mark)
			}
		}
		slices.Sort(want)
		got, err := clusterset.Imported(ctx, c.Client(), "shop", "db")
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("got %v, want %v", got, want)
		}
		return err
	})
}

// keep makes a node query the DNS Service of the cluster for the addresses of a name repeatedly, until stop is called,
// which returns the number of answers. Each must be the wanted one. A query without a reply is repeated, as in resolvers.
func (c *cluster) keep(t testing.TB, name string, want wanted) (stop func() int) {
	t.Helper()
	records, err := want(t.Context())
	must(t, err)
	text := sorted(records)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	count, failures := 0, []error{}
	ask := func(ctx context.Context) {
		err := c.nodes.Do(func() error {
			answer, err := plugin.DNSAt(c.ServiceIP(10)).Ask(ctx, name, "A")
			if err == nil && answer.Text() != text {
				err = fmt.Errorf("%s: answer %d in %s is %q, want %q", name, count+1, c.Name(), answer.Text(), text)
			}
			return err
		})
		if ctx.Err() != nil {
			return
		}
		count++
		if err != nil && len(failures) < 5 {
			failures = append(failures, err)
		}
	}
	group.Go(func() { wait.UntilWithContext(ctx, ask, 20*time.Millisecond) })
	return func() int {
		t.Helper()
		cancel()
		group.Wait()
		if err := errors.Join(failures...); err != nil {
			t.Error(err)
		}
		return count
	}
}
