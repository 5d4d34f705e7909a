// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Options says what cluster to start. The zero value with a Name is a single-stack IPv4 cluster of two
// nodes in two zones, with the CRDs of the Multi-Cluster Services API.
type Options struct {
	// Name names the cluster: in its nodes, its kubeconfigs, its logs. A DNS label.
	Name string
	// IPFamilies are the families of pods and Services, one or two, the first being the primary. Default: IPv4.
	// They are not looked at where both PodCIDRs and ServiceCIDRs are given.
	IPFamilies []corev1.IPFamily
	// PodCIDRs are the ranges of pod addresses, one for each family. By default each
	// cluster of this process gets ranges of its own, so that clusters form a flat network.
	PodCIDRs []netip.Prefix
	// ServiceCIDRs are the ranges of Services' cluster IPs, one for each family. The defaults of
	// clusters differ, too.
	ServiceCIDRs []netip.Prefix
	// Zones gives each node its zone (label topology.kubernetes.io/zone): there are as many nodes as
	// zones, and an empty string is a node without the label. Default (nil): <name>-a and <name>-b. Where it is empty but
	// not nil there is no node, kube-scheduler and kwok do not run, and no pod becomes ready.
	Zones []string
	// CRDs says what of the Multi-Cluster Services API is installed. Default: all of it.
	CRDs CRDs
	// Progress gets a line at least every ten seconds while programs are built. Default: os.Stderr.
	Progress io.Writer
	// APIServerArgs are appended to the API server's command line.
	APIServerArgs []string
}

// complete returns the options with defaults in the place of what is empty. Default ranges take a slot of the
// pool, which the returned function gives back.
func (o Options) complete(slots *slotPool) (_ Options, release func(), err error) {
	if problems := validation.IsDNS1123Label(o.Name); len(problems) > 0 {
		return Options{}, nil, fmt.Errorf("start a control plane: name %q: %s", o.Name, problems[0])
	}
	if len(o.IPFamilies) == 0 {
		o.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	if o.Zones == nil {
		o.Zones = []string{o.Name + "-a", o.Name + "-b"}
	}
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	release = func() {}
	if len(o.PodCIDRs) == 0 || len(o.ServiceCIDRs) == 0 {
		var slot byte
		if slot, release, err = slots.take(); err != nil {
			return Options{}, nil, fmt.Errorf("start control plane %s: %w", o.Name, err)
		}
		pods, services := o.PodCIDRs == nil, o.ServiceCIDRs == nil
		for _, family := range o.IPFamilies {
			defaults, ok := defaultCIDRs(family, slot)
			if !ok {
				release()
				return Options{}, nil, fmt.Errorf("start control plane %s: IP family %q is neither %q nor %q", o.Name, family, corev1.IPv4Protocol, corev1.IPv6Protocol)
			}
			if pods {
				o.PodCIDRs = append(o.PodCIDRs, defaults.pods)
			}
			if services {
				o.ServiceCIDRs = append(o.ServiceCIDRs, defaults.services)
			}
		}
	}
	return o, release, nil
}

type cidrs struct{ pods, services netip.Prefix }

// defaultCIDRs are the ranges of the given slot: 10.(64+slot).0.0/16 and fd00:64+slot::/48 for
// pods, 10.(160+slot).0.0/16 and fd00:160+slot::/112 for Services.
func defaultCIDRs(family corev1.IPFamily, slot byte) (cidrs, bool) {
	pods, services := 64+slot, 160+slot
	switch family {
	case corev1.IPv4Protocol:
		return cidrs{
			pods:     netip.PrefixFrom(netip.AddrFrom4([4]byte{10, pods}), 16),
			services: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, services}), 16),
		}, true
	case corev1.IPv6Protocol:
		return cidrs{
			pods:     netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 0, 0, pods}), 48),
			services: netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 0, 0, services}), 112),
		}, true
	default:
		return cidrs{}, false
	}
}

// slotCount is how many clusters of one process can have default ranges at once.
const slotCount = 96

// slots gives each cluster of this process a number of its own: the lowest that is free.
var slots slotPool

type slotPool struct {
	mu    sync.Mutex
	taken [slotCount]bool
}

func (p *slotPool) take() (slot byte, release func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.taken {
		if !p.taken[i] {
			p.taken[i] = true
			return byte(i), sync.OnceFunc(func() {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.taken[i] = false
			}), nil
		}
	}
	return 0, nil, fmt.Errorf("%d clusters have default address ranges already; set PodCIDRs and ServiceCIDRs", slotCount)
}
