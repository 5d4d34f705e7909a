// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/endpointslice/util"
	mcsclient "sigs.k8s.io/mcs-api/pkg/client/clientset/versioned"

	dns "github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// A cluster is a control plane with clusterset-dns's CoreDNS and controller.
type cluster struct {
	*clusterset.Cluster
	dns        string              // address and port
	controller *clusterset.Program // set by start
	processes  []*process.Process
	pods       *podNetwork // nil if this machine cannot have one
}

// start starts CoreDNS and the controller from a folder. It does not wait until they are ready.
func (c *cluster) start(ctx context.Context, folder string) {
	program := get(c.StartDNS(ctx, filepath.Join(folder, "coredns")))
	c.dns, c.processes = program.Address, append(c.processes, program.Process)
	probes := get(process.FreePort()).String()
	c.pods = newPodNetwork(ctx, c, probes)
	flags := []string{"--probe-address=" + probes, "--expose=NodePort"}
	if c.Name() == "north" {
		flags = append(flags, "--network=islands")
	}
	c.controller = get(c.StartController(ctx, filepath.Join(folder, "clusterset-controller"), flags...))
	c.processes = append(c.processes, c.controller.Process)
}

// awaitReady waits until CoreDNS answers for the clusterset's zone, and the controller is ready.
func (c *cluster) awaitReady(ctx context.Context) {
	c.poll(ctx, "CoreDNS", func(ctx context.Context) (bool, error) {
		got, err := dns.DNSAt(c.dns).Ask(ctx, "clusterset.local", "SOA")
		return got.Rcode == "NOERROR", err
	})
	c.poll(ctx, "the controller", c.controller.Ready)
}

// ended returns an error if one of the cluster's programs no longer runs.
func (c *cluster) ended() error {
	for _, p := range c.processes {
		if err := p.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) stop(ctx context.Context) {
	for _, p := range c.processes {
		if err := p.Stop(ctx, 5*time.Second); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if c.pods != nil {
		c.pods.close()
	}
}

// poll waits until done returns true. It fails if a program of the cluster ends; errors of done may be temporary.
func (c *cluster) poll(ctx context.Context, what string, done func(context.Context) (bool, error)) {
	var last error
	err := wait.PollUntilContextTimeout(ctx, time.Millisecond, patience, true, func(ctx context.Context) (is bool, _ error) {
		is, last = done(ctx)
		return is && last == nil, c.ended()
	})
	if err != nil {
		must(fmt.Errorf("wait for %s of %s: %w", what, c.Name(), errors.Join(err, last)))
	}
}

// importIP waits for the import of web, and returns its IP.
func (c *cluster) importIP(ctx context.Context) (ip string) {
	mcs := get(mcsclient.NewForConfig(c.Config()))
	c.poll(ctx, "the IP of ServiceImport web", func(ctx context.Context) (bool, error) {
		found, err := mcs.MulticlusterV1beta1().ServiceImports(namespace).Get(ctx, "web", metav1.GetOptions{})
		ip = strings.Join(found.Spec.IPs, " ")
		return ip != "", err
	})
	return ip
}

// awaitPods waits until db has exactly count pods, all ready, and returns their addresses.
func (c *cluster) awaitPods(ctx context.Context, count int) (ips []string) {
	c.poll(ctx, fmt.Sprintf("%d ready pods of db", count), func(ctx context.Context) (bool, error) {
		pods, err := c.Client().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=db"})
		ips = nil
		for i := range pods.Items {
			if pod := &pods.Items[i]; pod.Status.PodIP != "" && util.IsPodReady(pod) {
				ips = append(ips, pod.Status.PodIP)
			}
		}
		return len(ips) == count && len(pods.Items) == count, err
	})
	return ips
}

// awaitPath waits until this cluster's controller reaches the pods of another cluster, and all its probe targets answered.
func (c *cluster) awaitPath(ctx context.Context, to *cluster) {
	c.poll(ctx, "the path to "+to.Name(), func(ctx context.Context) (bool, error) {
		lease, err := c.Client().CoordinationV1().Leases(clusterset.Namespace).Get(ctx, memberstate.LeasePrefix+to.Name(), metav1.GetOptions{})
		return lease.Annotations[memberstate.PathAnnotation] == string(liveness.Reachable), err
	})
	// A probe target that never answered does not count as cut.
	to.poll(ctx, "a probe of each target", func(context.Context) (bool, error) {
		return to.pods.answered[0].Load() > 0 && to.pods.answered[1].Load() > 0, nil
	})
}

func (c *cluster) podIP(ctx context.Context, name string) string {
	return get(c.Client().CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})).Status.PodIP
}

// awaitBackends waits until the imported slices of web have this many endpoints per cluster that get traffic.
func (c *cluster) awaitBackends(ctx context.Context, want map[string]int) {
	c.poll(ctx, fmt.Sprintf("endpoints %v behind web", want), func(ctx context.Context) (bool, error) {
		endpoints, err := clusterset.Imported(ctx, c.Client(), namespace, "web")
		got := map[string]int{}
		for _, each := range endpoints {
			if source, _, _ := strings.Cut(each, "/"); !strings.HasSuffix(each, "-") {
				got[source]++
			}
		}
		return maps.Equal(got, want), err
	})
}
