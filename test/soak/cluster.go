// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsclient "sigs.k8s.io/mcs-api/pkg/client/clientset/versioned"

	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/soak/judge"
)

// patience bounds each wait for what takes seconds.
const patience = 3 * time.Minute

// names are those of the clusters.
var names = []string{"east", "north", "west"}

// A cluster is a control plane with a CoreDNS and a controller of ours.
type cluster struct {
	*controlplane.Cluster
	mcs     mcsclient.Interface
	journal *journal
	judge   *judge.Judge

	dns, controller *program
	// ways are those to the other clusters, by their names.
	ways map[string]*controlplane.Remote
	// api is held while the API server is down, and by those who write.
	api sync.Mutex
}

// newCluster grants the rights and prepares the programs.
func newCluster(ctx context.Context, plane *controlplane.Cluster, bin string, judging *judge.Judge,
	journal *journal,
) (*cluster, error) {
	c := &cluster{Cluster: plane, journal: journal, judge: judging, ways: map[string]*controlplane.Remote{}}
	var err error
	if c.mcs, err = mcsclient.NewForConfig(plane.Config()); err != nil {
		return nil, err
	}
	if err := clusterset.Install(ctx, plane); err != nil {
		return nil, err
	}
	_, err = plane.Client().CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	controllerCredential, dnsCredential, err := clusterset.WriteCredentials(ctx, plane)
	if err != nil {
		return nil, err
	}
	c.controller = c.program("clusterset-controller", c.waysOf(), func() (*clusterset.Program, error) {
		return clusterset.StartController(plane, filepath.Join(bin, "clusterset-controller"), controllerCredential,
			"--stale-after", staleAfter.String())
	})
	c.dns = c.program("coredns", judge.Into(plane.Name(), names), func() (*clusterset.Program, error) {
		judging.Starts(plane.Name(), time.Now())
		return clusterset.StartDNS(plane, filepath.Join(bin, "coredns"), dnsCredential)
	})
	return c, nil
}

// program is one that stands in ways while it is down, as it is now.
func (c *cluster) program(name string, ways []judge.Way, start func() (*clusterset.Program, error)) *program {
	p := &program{
		name: name + " of " + c.Name(), journal: c.journal, start: start, told: true,
		down: func() {
			c.judge.Block(ways...)
			if name == "coredns" {
				c.judge.Ends(c.Name())
			}
		},
		up: func() { c.judge.Clear(time.Now(), ways...) },
	}
	p.down()
	return p
}

// waysOf are all that begin or end in this cluster.
func (c *cluster) waysOf() []judge.Way { return judge.Of(c.Name(), names) }

// join makes other a member of c, over a way that can be cut.
func (c *cluster) join(ctx context.Context, other *cluster) error {
	way, err := other.Remote(c.Name())
	if err != nil {
		return err
	}
	c.ways[other.Name()] = way
	credential, err := way.ServiceAccountKubeconfig(ctx, clusterset.Namespace, "clusterset-member")
	if err != nil {
		return err
	}
	return clusterset.Join(ctx, c.Cluster, other.Name(), credential)
}
