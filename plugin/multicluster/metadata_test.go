// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"testing"

	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"
)

// A view or a policy compares metadata with a name in lower case, as kubernetes publishes them.
func TestMetadataIsInLowerCase(t *testing.T) {
	m := newTestPlugin(t, demo)
	for name, want := range map[string]map[string]string{
		"DB-0.East.DB.Demo.SVC.ClusterSet.local.": {
			"namespace": "demo", "service": "db", "endpoint": "db-0", "cluster": "east",
		},
		"_HTTP._Tcp.Web.DEMO.svc.clusterset.LOCAL.": {
			"namespace": "demo", "service": "web", "port-name": "http", "protocol": "tcp",
		},
	} {
		ctx := m.Metadata(metadata.ContextWithMetadata(t.Context()),
			request.Request{Req: new(dns.Msg).SetQuestion(name, dns.TypeA), W: udpClient})
		for label, value := range want {
			if got := metadata.ValueFunc(ctx, "multicluster/"+label)(); got != value {
				t.Errorf("%s: multicluster/%s is %q, want %q", name, label, got, value)
			}
		}
	}
}
