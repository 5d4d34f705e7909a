// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
	mcsclient "sigs.k8s.io/mcs-api/pkg/client/clientset/versioned"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// A cluster is a control plane with a CoreDNS and a controller of ours.
type cluster struct {
	name       string
	plane      *controlplane.Cluster
	kubeconfig string // path, of the administrator
	dns        string // address and port
	health     string // address and port of the controller's metrics and health
	kube       kubernetes.Interface
	mcs        mcsclient.Interface
	processes  []*process.Process
}

func newCluster(plane *controlplane.Cluster) (*cluster, error) {
	c := &cluster{name: plane.Name(), plane: plane, kubeconfig: filepath.Join(plane.Directory(), "admin.kubeconfig")}
	var err error
	if err = plane.WriteKubeconfig(c.kubeconfig); err != nil {
		return nil, err
	}
	if c.kube, err = kubernetes.NewForConfig(plane.Config()); err != nil {
		return nil, err
	}
	if c.mcs, err = mcsclient.NewForConfig(plane.Config()); err != nil {
		return nil, err
	}
	return c, nil
}

// writeCredential writes a kubeconfig of a service account and returns its path.
func (c *cluster) writeCredential(ctx context.Context, namespace, account string) (string, error) {
	kubeconfig, err := c.plane.ServiceAccountKubeconfig(ctx, namespace, account)
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.plane.Directory(), account+".kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		return "", fmt.Errorf("write the credential of %s: %w", account, err)
	}
	return path, nil
}

// startDNS starts our CoreDNS, and returns once it answers for the clusterset's zone.
func (c *cluster) startDNS(ctx context.Context, binary string) error {
	credential, err := c.writeCredential(ctx, "kube-system", "clusterset-coredns")
	if err != nil {
		return err
	}
	if c.dns, err = freeAddress(); err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(c.dns)
	if err != nil {
		return err
	}
	corefile := filepath.Join(c.plane.Directory(), "Corefile")
	text := fmt.Sprintf(`.:%s {
    bind 127.0.0.1
    errors
    multicluster clusterset.local {
        kubeconfig %s
    }
    kubernetes cluster.local {
        kubeconfig %s
    }
}
`, port, credential, credential)
	if err := os.WriteFile(corefile, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the Corefile: %w", err)
	}
	if err := c.start("coredns", binary, "-conf", corefile); err != nil {
		return err
	}
	return poll(ctx, "CoreDNS of "+c.name, func(ctx context.Context) (bool, error) {
		got, _, err := dig(ctx, c.dns, "clusterset.local", "SOA")
		return err == nil && got.rcode == "NOERROR", c.ended()
	})
}

// startController starts our controller, and returns once it is ready.
func (c *cluster) startController(ctx context.Context, binary string) error {
	credential, err := c.writeCredential(ctx, "clusterset-dns", "clusterset-controller")
	if err != nil {
		return err
	}
	if c.health, err = freeAddress(); err != nil {
		return err
	}
	err = c.start("clusterset-controller", binary, "--cluster-id", c.name, "--kubeconfig", credential, "--namespace", "clusterset-dns", "--bind-address", c.health)
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: time.Second}
	return poll(ctx, "the controller of "+c.name, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.health+"/readyz", http.NoBody)
		if err != nil {
			return false, err
		}
		response, err := client.Do(request)
		if err != nil {
			return false, c.ended() // it does not listen yet
		}
		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
}

func (c *cluster) start(name, binary string, args ...string) error {
	p, err := process.Start(process.Spec{
		Name: name + " of " + c.name, Path: binary, Args: args,
		LogFile: filepath.Join(c.plane.Directory(), name+".log"),
	})
	if err == nil {
		c.processes = append(c.processes, p)
	}
	return err
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
}

// importIP waits for the import of web and returns its IP.
func (c *cluster) importIP(ctx context.Context) (string, error) {
	var ip string
	err := poll(ctx, fmt.Sprintf("the IP of ServiceImport %s/web in %s", namespace, c.name), func(ctx context.Context) (bool, error) {
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
	err := poll(ctx, fmt.Sprintf("%d ready pods with %s in %s", count, selector, c.name), func(ctx context.Context) (bool, error) {
		pods, err := c.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil || len(pods.Items) != count {
			return false, err
		}
		ips = ips[:0]
		for i := range pods.Items {
			if pod := &pods.Items[i]; pod.Status.PodIP != "" && isReady(pod) {
				ips = append(ips, pod.Status.PodIP)
			}
		}
		return len(ips) == count, nil
	})
	return ips, err
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}

func (c *cluster) podIP(ctx context.Context, name string) (string, error) {
	pod, err := c.kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read pod %s/%s in %s: %w", namespace, name, c.name, err)
	}
	return pod.Status.PodIP, nil
}

// awaitBackends waits until the imported slices of web hold so many endpoints of
// each cluster.
func (c *cluster) awaitBackends(ctx context.Context, want map[string]int) error {
	return poll(ctx, fmt.Sprintf("endpoints %v behind web in %s", want, c.name), func(ctx context.Context) (bool, error) {
		list, err := c.kube.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{
			LabelSelector: v1beta1.LabelServiceName + "=web",
		})
		if err != nil {
			return false, err
		}
		got := map[string]int{}
		for i := range list.Items {
			got[list.Items[i].Labels[v1beta1.LabelSourceCluster]] += len(list.Items[i].Endpoints)
		}
		return maps.Equal(got, want), nil
	})
}

// awaitNothingLeft waits until nothing of ours is left in the demo's namespace.
func (c *cluster) awaitNothingLeft(ctx context.Context) error {
	return poll(ctx, "the end of all imported objects in "+c.name, func(ctx context.Context) (bool, error) {
		imports, err := c.mcs.MulticlusterV1beta1().ServiceImports(namespace).List(ctx, metav1.ListOptions{})
		if err != nil || len(imports.Items) > 0 {
			return false, err
		}
		imported, err := c.kube.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{LabelSelector: v1beta1.LabelSourceCluster})
		if err != nil || len(imported.Items) > 0 {
			return false, err
		}
		services, err := c.kube.CoreV1().Services(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for i := range services.Items {
			if name := services.Items[i].Name; name != "web" && name != "db" {
				return false, nil
			}
		}
		return true, nil
	})
}

// freeAddress finds a loopback port that is free for UDP and TCP.
func freeAddress() (string, error) {
	var last error
	for range 10 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", fmt.Errorf("find a free port: %w", err)
		}
		address := listener.Addr().String()
		packets, err := net.ListenPacket("udp", address)
		listener.Close()
		if err == nil {
			packets.Close()
			return address, nil
		}
		last = err
	}
	return "", fmt.Errorf("find a port that is free for UDP and TCP: %w", last)
}
