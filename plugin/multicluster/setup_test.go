// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/miekg/dns"
)

func TestAStartWithoutTheAPIServerServesNothingInItsZones(t *testing.T) {
	path := kubeconfigOf(t, "http://"+unused(t)) // the API server is away
	synctest.Test(t, func(t *testing.T) {
		m := newMulticluster()
		m.Zones, m.options.Kubeconfig = []string{testZone}, path
		stop, err := m.start()
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		reply := ask(t, m, new(dns.Msg).SetQuestion("web.demo.svc."+testZone, dns.TypeA), udpClient)
		if reply.Rcode != dns.RcodeServerFailure {
			t.Errorf("the answer is %s", dns.RcodeToString[reply.Rcode])
		}
	})
}

func TestLocalAddresses(t *testing.T) {
	for name, test := range map[string]struct {
		hosts []string
		want  []netip.Addr
	}{
		"global": {
			[]string{"10.0.0.1", "169.254.20.10", "127.0.0.1"},
			[]netip.Addr{netip.MustParseAddr("10.0.0.1")},
		},
		"link-local":      {[]string{"169.254.20.10", "127.0.0.1"}, []netip.Addr{netip.MustParseAddr("169.254.20.10")}},
		"loopback":        {[]string{"127.0.0.1", "fe80::1%lo"}, []netip.Addr{netip.MustParseAddr("127.0.0.1")}},
		"none with sense": {[]string{"fe80::1%lo"}, nil},
	} {
		if got := localAddresses(test.hosts); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
