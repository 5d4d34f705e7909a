// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
	mcsclient "sigs.k8s.io/mcs-api/pkg/client/clientset/versioned"

	dns "github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/controller/canary"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/port"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
	"github.com/clusterset-dns/clusterset-dns/test/demo/plane"
)

// A cluster is a control plane with a CoreDNS and a controller of ours.
type cluster struct {
	name       string
	plane      *plane.Plane
	kubeconfig string // path, of the administrator
	dns        string // address and port
	health     string // address and port of the controller's metrics and health
	kube       kubernetes.Interface
	mcs        mcsclient.Interface
	processes  []*process.Process
	pods       *podNetwork // nil if this machine cannot have one
}

func newCluster(p *plane.Plane) (*cluster, error) {
	c := &cluster{name: p.Name(), plane: p, kubeconfig: filepath.Join(p.Directory(), "admin.kubeconfig")}
	var err error
	if err = p.WriteKubeconfig(c.kubeconfig); err != nil {
		return nil, err
	}
	if c.kube, err = kubernetes.NewForConfig(p.Config()); err != nil {
		return nil, err
	}
	if c.mcs, err = mcsclient.NewForConfig(p.Config()); err != nil {
		return nil, err
	}
	return c, nil
}

// startDNS starts our CoreDNS, and returns once it answers for the clusterset's zone.
func (c *cluster) startDNS(ctx context.Context, binary string) error {
	credential, err := clusterset.WriteCredential(ctx, c.plane, metav1.NamespaceSystem, "clusterset-coredns")
	if err != nil {
		return err
	}
	program, err := clusterset.StartDNS(c.plane, binary, credential)
	if err != nil {
		return err
	}
	c.dns, c.processes = program.Address, append(c.processes, program.Process)
	return poll(ctx, "CoreDNS of "+c.name, func(ctx context.Context) (bool, error) {
		got, err := dns.DNSAt(c.dns).Ask(ctx, "clusterset.local", "SOA")
		return err == nil && got.Rcode == "NOERROR", c.ended()
	})
}

// startController starts our controller, and returns once it is ready.
func (c *cluster) startController(ctx context.Context, binary string) error {
	credential, err := clusterset.WriteCredential(ctx, c.plane, clusterset.Namespace, "clusterset-controller")
	if err != nil {
		return err
	}
	probes, err := port.Free()
	if err != nil {
		return err
	}
	if c.pods, err = newPodNetwork(ctx, c, probes.String()); err != nil && !errors.Is(err, errNoAddress) {
		return err
	}
	flags := []string{"--canary-address=" + probes.String(), "--expose=NodePort"}
	if c.name == "north" {
		flags = append(flags, "--network=islands")
	}
	program, err := clusterset.StartController(c.plane, binary, credential, flags...)
	if err != nil {
		return err
	}
	c.health, c.processes = program.Address, append(c.processes, program.Process)
	return poll(ctx, "the controller of "+c.name, program.Ready)
}

// ended is an error where one of the cluster's own programs no longer runs.
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

// importIP waits for the import of web and returns its IP.
func (c *cluster) importIP(ctx context.Context) (string, error) {
	var ip string
	err := poll(ctx, fmt.Sprintf("the IP of ServiceImport %s/web in %s", namespace, c.name),
		func(ctx context.Context) (bool, error) {
			found, err := c.mcs.MulticlusterV1beta1().ServiceImports(namespace).Get(ctx, "web", metav1.GetOptions{})
			if err != nil || len(found.Spec.IPs) == 0 {
				return false, c.ended() // it is not there yet
			}
			ip = found.Spec.IPs[0]
			return true, nil
		})
	return ip, err
}

// awaitPods waits for so many ready pods, and no others, and returns their addresses.
func (c *cluster) awaitPods(ctx context.Context, selector string, count int) ([]string, error) {
	var ips []string
	err := poll(ctx, fmt.Sprintf("%d ready pods with %s in %s", count, selector, c.name),
		func(ctx context.Context) (bool, error) {
			pods, err := c.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
			if err != nil || len(pods.Items) != count {
				return false, err
			}
			ips = ips[:0]
			for i := range pods.Items {
				if pod := &pods.Items[i]; pod.Status.PodIP != "" && plane.Ready(pod) {
					ips = append(ips, pod.Status.PodIP)
				}
			}
			return len(ips) == count, nil
		})
	return ips, err
}

// awaitPath waits for the path to the pods of another cluster, as the controller of this one sees it.
func (c *cluster) awaitPath(ctx context.Context, to *cluster, want canary.Path) error {
	return poll(ctx, fmt.Sprintf("the path from %s to %s to be %s", c.name, to.name, want),
		func(ctx context.Context) (bool, error) {
			lease, err := c.kube.CoordinationV1().Leases(clusterset.Namespace).Get(ctx, memberstate.LeasePrefix+to.name,
				metav1.GetOptions{})
			if err != nil {
				return false, c.ended() // it is not there yet
			}
			return lease.Annotations[memberstate.PathAnnotation] == string(want), nil
		})
}

func (c *cluster) podIP(ctx context.Context, name string) (string, error) {
	pod, err := c.kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read pod %s/%s in %s: %w", namespace, name, c.name, err)
	}
	return pod.Status.PodIP, nil
}

// awaitBackends waits until the imported slices of web hold so many serving endpoints of each cluster.
func (c *cluster) awaitBackends(ctx context.Context, want map[string]int) error {
	return poll(ctx, fmt.Sprintf("endpoints %v behind web in %s", want, c.name),
		func(ctx context.Context) (bool, error) {
			list, err := c.kube.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{
				LabelSelector: v1beta1.LabelServiceName + "=web",
			})
			if err != nil {
				return false, err
			}
			got := map[string]int{}
			for i := range list.Items {
				source := list.Items[i].Labels[v1beta1.LabelSourceCluster]
				got[source] += 0
				for _, endpoint := range list.Items[i].Endpoints {
					if ptr.Deref(endpoint.Conditions.Serving, true) {
						got[source]++
					}
				}
			}
			return maps.Equal(got, want), nil
		})
}
