// SPDX-License-Identifier: Apache-2.0

// Package kubelet simulates the kubelets of a cluster without a container runtime: it assigns addresses to pods, and
// makes them ready. With Options.Images, it runs the programs of pods as local processes.
//
// A running pod has its own network namespace with the pod's address, so its ports need no mapping, and its own root
// directory, with the program and the volumes at the paths of the image and the mounts. The API server issues its
// service account token for this pod. The program gets the pod's command line and environment, has its readiness
// probed, and is restarted when it ends. If the pod is deleted, the program runs on while its preStop hook sleeps, and
// must end within the grace period. Ports can be forwarded, and logs can be read.
//
// Differences from a real kubelet:
//
//   - There are no images: a map has the program for the name of an image, and other files of the image are missing. If a name
//     is not in the map, its pod waits, and the test fails.
//   - The status of a pod has the readiness, but no reason for waiting and no restart count.
//   - Users, capabilities, seccomp, resource limits and a read-only root are not enforced. Liveness probes are ignored.
//   - Of all volumes, only ConfigMaps are updated, within a second; tokens are not renewed.
//   - There is no host network.
//   - A pod has one container. It reaches the API server at the ClusterIP of the Service kubernetes, but at the API server's own
//     port, because the Service has no endpoints.
//   - Pods with an image without a program run nothing, and are ready at once, until a test changes that. Without Images, all
//     pods are like that, and the kubelets' server does not run.
package kubelet

import (
	"context"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/network"
)

// Options configure the simulated kubelets.
type Options struct {
	// Cluster must have no other kubelet.
	Cluster *controlplane.Cluster
	// Router is the network of running pods. It must route the ClusterIP of the Service kubernetes to the API server.
	Router *network.Namespace
	// Images maps names of images to static programs. A program is in the root directory of its pods, under its own
	// name, and is their entry point. With an empty path, or if Images is nil, pods run nothing.
	Images map[string]string
	// DNS is the address of the cluster's DNS, which pods with the dnsPolicy ClusterFirst use.
	DNS string
	// Directory has the root directories and the logs of the pods.
	Directory string
}

// A Kubelet simulates the kubelets of all nodes of a cluster.
type Kubelet struct {
	Options
	t testing.TB

	group  sync.WaitGroup // of all goroutines of the kubelets
	server http.Server

	mu   sync.Mutex
	pods map[types.UID]*pod
	next map[string][]netip.Addr // by node: the addresses of its next pod, one of each family
}

// Start simulates kubelets until the test ends. The test fails if a pod cannot be run. At the end all processes stop,
// and the pods stay in the API unchanged. The cluster's nodes must exist.
func Start(t testing.TB, options Options) {
	k := &Kubelet{Options: options, t: t, pods: map[types.UID]*pod{}, next: map[string][]netip.Addr{}}
	nodes, err := options.Cluster.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	controlplanetest.Must(t, err)
	for i := range nodes.Items {
		for _, text := range nodes.Items[i].Spec.PodCIDRs {
			prefix, err := netip.ParsePrefix(text)
			controlplanetest.Must(t, err)
			k.next[nodes.Items[i].Name] = append(k.next[nodes.Items[i].Name], prefix.Masked().Addr().Next())
		}
	}
	if k.Images != nil {
		k.serve()
	}
	running, cancel := context.WithCancel(context.WithoutCancel(t.Context())) // of all pods
	factory := informers.NewSharedInformerFactory(options.Cluster.Client(), 0)
	_, err = factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(now any) { k.saw(running, now) },
		UpdateFunc: func(_, now any) { k.saw(running, now) },
		DeleteFunc: k.lost,
	})
	controlplanetest.Must(t, err)
	factory.Start(running.Done())
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
		_ = k.server.Close()
		k.group.Wait()
	})
}

// saw handles a new or changed pod.
func (k *Kubelet) saw(ctx context.Context, seen any) {
	object, ok := seen.(*corev1.Pod)
	if !ok || object.Spec.NodeName == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	p := k.pods[object.UID]
	if p == nil {
		life, end := context.WithCancel(ctx)
		next := k.next[object.Spec.NodeName]
		p = &pod{kubelet: k, object: object, addresses: slices.Clone(next), end: end, gone: make(chan struct{})}
		for i := range next {
			next[i] = next[i].Next()
		}
		k.pods[object.UID] = p
		k.group.Go(func() {
			if err := p.live(ctx, life); err != nil {
				k.t.Errorf("pod %s/%s of %s: %v", object.Namespace, object.Name, k.Cluster.Name(), err)
			}
		})
	}
	if object.DeletionTimestamp != nil {
		p.end()
	}
}

// lost handles a pod that is gone.
func (k *Kubelet) lost(seen any) {
	if unknown, ok := seen.(cache.DeletedFinalStateUnknown); ok {
		seen = unknown.Obj
	}
	object, ok := seen.(*corev1.Pod)
	if !ok {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.pods[object.UID]; p != nil {
		p.end()
		close(p.gone)
		delete(k.pods, object.UID)
	}
}

// find returns the running pod with this name, or nil.
func (k *Kubelet) find(namespace, name string) *pod {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.pods {
		if p.object.Namespace == namespace && p.object.Name == name {
			return p
		}
	}
	return nil
}

// logFile returns the path of the log of a pod's program.
func (k *Kubelet) logFile(namespace, name string) string {
	return filepath.Join(k.Directory, namespace+"-"+name+".log")
}
