// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/test/soak/judge"
	"github.com/clusterset-dns/clusterset-dns/test/soak/outcome"
)

// look reads what a cluster has.
func (c *cluster) look(ctx context.Context) (outcome.Objects, error) {
	exports, err := c.mcs.MulticlusterV1beta1().ServiceExports(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return outcome.Objects{}, err
	}
	imports, err := c.mcs.MulticlusterV1beta1().ServiceImports(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return outcome.Objects{}, err
	}
	services, err := c.Client().CoreV1().Services(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return outcome.Objects{}, err
	}
	endpointSlices, err := c.Client().DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return outcome.Objects{}, err
	}
	return outcome.Read(c.Name(), pointers(exports.Items), pointers(imports.Items), pointers(services.Items),
		pointers(endpointSlices.Items))
}

func pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}

// converged is nil if every cluster has and answers what the exports of all come to.
func converged(ctx context.Context, clusters map[string]*cluster) error {
	seen := map[string]outcome.Objects{}
	for _, name := range names {
		o, err := clusters[name].look(ctx)
		if err != nil {
			return fmt.Errorf("read the objects of %s: %w", name, err)
		}
		seen[name] = o
	}
	return outcome.Check(append(serviceNames(), "never-exported"), seen, func(cluster, name string) judge.Reply {
		return clusters[cluster].ask(ctx, name, dns.TypeA)
	})
}
