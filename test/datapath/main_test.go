// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"context"
	"net/netip"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/assets"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/network"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/sandbox"
)

// apiAddress is the address of the API servers for nodes and pods: an address for documentation (RFC 5737).
var apiAddress = netip.MustParseAddr("192.0.2.1")

// router is the network namespace of this process. The API servers listen in it.
var router *network.Namespace

func TestMain(m *testing.M) { sandbox.Main(m, outside, inside) }

// outside builds missing programs.
func outside() (clean func(), err error) {
	if _, err := assets.Ensure(); err != nil {
		return nil, err
	}
	_, err = programs.Build(context.Background(), "cmd/coredns", "cmd/clusterset-controller", "test/datapath/pod")
	return func() {}, err
}

func inside() (err error) {
	if router, err = sandbox.Setup("ip", "nft", "iptables", "ip6tables", "nsenter", "unshare", "mount", "sh", "nginx"); err != nil {
		return err
	}
	return router.AddAddress(apiAddress)
}
