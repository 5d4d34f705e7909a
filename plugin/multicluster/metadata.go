// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"

	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/request"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/name"
)

// Metadata implements metadata.Provider. The values are in lower case: views and policies compare them.
func (m *Multicluster) Metadata(ctx context.Context, state request.Request) context.Context {
	zone, below := m.match(state.Name())
	if zone < 0 || zone >= len(m.Zones) {
		return ctx
	}
	asked := name.Parse(below)
	for label, value := range map[string]string{
		"multicluster/namespace": asked.Namespace,
		"multicluster/service":   asked.Service,
		"multicluster/port-name": asked.Port,
		"multicluster/protocol":  asked.Protocol,
		"multicluster/endpoint":  asked.Host,
		"multicluster/cluster":   asked.Cluster,
	} {
		metadata.SetValueFunc(ctx, label, func() string { return value })
	}
	return ctx
}
