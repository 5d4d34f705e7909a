// SPDX-License-Identifier: Apache-2.0

// Package kubelet simulates the kubelets of a cluster without a container runtime: it gives pods their addresses, and makes
// them ready. If it is told what images have, it runs the programs of the pods as processes of this machine.
//
// Such a pod has a network namespace of its own with the address that the pod tells of, so that nothing of its ports
// has to be changed, and a root directory of its own, in which its program stands where the image has it, and its
// volumes where it mounts them. Its service account's token is one that the API server gave for this very pod.
// It gets its own command line and environment, is asked by its readiness probe, and is started again where it ends. Where
// the pod is deleted, it goes on for as long as its preStop hook sleeps, and is asked to end within its grace period. A port can
// be forwarded to it, and its log be read.
//
// What is not as a kubelet does it:
//
//   - There are no images: a map says which program an image's name stands for, and its other files are missing. A pod waits for
//     a name that is not in it, and the test fails.
//   - The status of a pod tells whether it is ready, and neither what it waits for nor how often its program was started.
//   - Users, capabilities, seccomp, limits of resources and a read-only root are not enforced, liveness probes not asked.
//   - Of volumes, ConfigMaps alone follow what they are made of, within a second; tokens are not renewed.
//   - No pod has the network of its node. Instead of that, it has the address of its annotation example.org/address, too. The
//     last pod that gets an address has it.
//   - There is one container in a pod. It reaches the API server at the ClusterIP of the Service kubernetes, but at the port
//     where that listens, since the Service has no endpoints.
//   - Pods of an image that stands for no program are played: they run nothing, and are ready at once, until a test says
//     that they are not. Without images, all are, and nothing is asked of the kubelets.
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

// addressAnnotation is a further address of a pod.
const addressAnnotation = "example.org/address"

// Options say what to play, and how.
type Options struct {
	// Cluster is one without another kubelet.
	Cluster *controlplane.Cluster
	// Router is what pods that run are attached to. The ClusterIP of the Service kubernetes leads from there to the API server.
	Router *network.Namespace
	// Images are the programs, static ones, that names of images stand for. A program stands in the root directory of
	// its pods, under its own name, and is their entry point. An empty one is played, and all are if this is nil.
	Images map[string]string
	// DNS is the address of the cluster's DNS, which pods ask unless their dnsPolicy is another than ClusterFirst.
	DNS string
	// Directory gets the root directories and the logs of the pods.
	Directory string
}

// A Kubelet plays the kubelets of all nodes of a cluster.
type Kubelet struct {
	Options
	t testing.TB

	group  sync.WaitGroup // of all goroutines
	server http.Server

	mu   sync.Mutex
	pods map[types.UID]*pod
	next map[string][]netip.Addr // by node: the addresses of its next pod, one of each family
}

// Start plays until the test ends, which fails if a pod cannot be played: all processes end at once, and the pods stay in the
// API as they are. The cluster must have its nodes.
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
	running, cancel := context.WithCancel(context.WithoutCancel(t.Context())) // of all that runs
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

// saw looks at a pod that is new or has changed.
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

// lost looks at a pod that is gone.
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

// find is the pod of a name that lives, nil where there is none.
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

// logFile has what the program of a pod writes.
func (k *Kubelet) logFile(namespace, name string) string {
	return filepath.Join(k.Directory, namespace+"-"+name+".log")
}
