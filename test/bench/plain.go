// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/bench/fleet"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// plainCommand has this program be, in a process of its own, the least that a controller can do: it sends the same requests
// to the same API servers, and knows beforehand what to write. It prints what that took as JSON.
const plainCommand = "plain"

// leastTime is what the requests took a client that does nothing else.
type leastTime struct {
	// Took and CPU are the time and the processor time of all requests.
	Took, CPU time.Duration
	// Count is the number of changes, P50 and P99 how long one took from its request to the event of a watch.
	Count    int
	P50, P99 float64
}

// floorOfChanges is the longest time for which the plain client changes endpoints: it keeps nothing that could grow.
const floorOfChanges = 2 * time.Minute

// floors measures a plain client in place of the controller, and compares it with what the controller took.
func (b *bed) floors(ctx context.Context) error {
	local := b.local()
	if err := kill(&local.controller); err != nil {
		return err
	}
	rest, err := b.plain(ctx, "rest", b.rest)
	if err != nil {
		return err
	}
	for _, name := range b.shape.Namespaces() {
		if err := local.objects.Namespaces(ctx, floorPrefix+name); err != nil {
			return err
		}
	}
	imported, err := b.plain(ctx, "import", 0)
	if err != nil {
		return err
	}
	changed, err := b.plain(ctx, "changes", min(b.changes, floorOfChanges))
	if err != nil {
		return err
	}
	for _, f := range b.figures {
		switch f.what {
		case whatImport:
			f.compare(float64(imported.Took), inUnits, ratio(1.3))
		case whatRest:
			f.compare(100*float64(rest.CPU)/float64(rest.Took), percent, ratio(2))
		case whatMedian:
			f.compare(changed.P50, inUnits, nil)
		case whatTail:
			f.compare(changed.P99, inUnits, ratio(2))
		case whatPerChange:
			f.compare(float64(changed.CPU)/float64(changed.Count), inUnits, nil)
		}
	}
	return nil
}

// plain runs a part of the plain client.
func (b *bed) plain(ctx context.Context, part string, lasts time.Duration) (least leastTime, err error) {
	b.say("floor of %s", part)
	cmd := exec.CommandContext(ctx, filepath.Join(b.bin, "bench"), plainCommand, part, b.local().credential,
		strconv.Itoa(b.rate), lasts.String())
	var output, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &complaint
	if err := process.StartTied(cmd); err != nil {
		return least, err
	}
	if err := cmd.Wait(); err != nil {
		return least, fmt.Errorf("%w: %s", err, complaint.String())
	}
	return least, json.Unmarshal(output.Bytes(), &least)
}

// plain is a client of the local cluster.
type plain struct {
	*fleet.Client
	rate  int
	lasts time.Duration
}

// runPlain is the plain client, in its process: its arguments are the part, a kubeconfig, the rate, and how long slices
// change, or nothing does.
func runPlain(ctx context.Context, args []string, stdout io.Writer) error {
	config, err := clientcmd.BuildConfigFromFlags("", args[1])
	if err != nil {
		return err
	}
	var p plain
	p.Client, err = fleet.NewClient(config)
	var err1, err2 error
	p.rate, err1 = strconv.Atoi(args[2])
	p.lasts, err2 = time.ParseDuration(args[3])
	if err := errors.Join(err, err1, err2); err != nil {
		return err
	}
	var least leastTime
	parts := map[string]func(context.Context, *leastTime) error{"import": p.imports, "changes": p.changes, "rest": p.rest}
	if err := parts[args[0]](ctx, &least); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return json.NewEncoder(stdout).Encode(least)
}

// atOnce is how many requests the plain client has in flight.
const atOnce = 16

// floorPrefix begins the names of the namespaces that the plain client writes to. They exist.
const floorPrefix = "floor-"

// imports writes what the controller wrote for each import, once more in other namespaces.
func (p *plain) imports(ctx context.Context, least *leastTime) error {
	all, err := madeIn(ctx, p.Client)
	if err != nil {
		return err
	}
	least.Took, least.CPU, err = during(os.Getpid(), func() error { return copyAll(ctx, p.Client, all, floorPrefix, atOnce) })
	return err
}

// changes changes slices that imports wrote, at a rate.
func (p *plain) changes(ctx context.Context, least *leastTime) error {
	list, err := p.DiscoveryV1().EndpointSlices("").List(ctx, metav1.ListOptions{LabelSelector: mcsv1beta1.LabelServiceName})
	if err != nil {
		return err
	}
	own := slices.DeleteFunc(list.Items, func(slice discoveryv1.EndpointSlice) bool {
		return !strings.HasPrefix(slice.Namespace, floorPrefix)
	})
	rand.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] })
	// An API server that is busy ends the watch of a client that is slow.
	events, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return p.DiscoveryV1().EndpointSlices("").Watch(ctx, options)
		},
	})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	asked := map[string]time.Time{} // the changes that the watch has not had, by the address that each gives
	var took []time.Duration
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for event := range events.ResultChan() {
			slice, ok := event.Object.(*discoveryv1.EndpointSlice)
			if !ok || len(slice.Endpoints) == 0 {
				continue
			}
			mu.Lock()
			if at, ok := asked[slice.Endpoints[0].Addresses[0]]; ok {
				took = append(took, time.Since(at))
				delete(asked, slice.Endpoints[0].Addresses[0])
			}
			mu.Unlock()
		}
	}()
	least.Took, least.CPU, err = during(os.Getpid(), func() error {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(atOnce) // an API server that falls behind gets no more at once
		err := fleet.Every(ctx, time.Second/time.Duration(p.rate), p.lasts, func() error {
			slice, address := own[least.Count%len(own)].DeepCopy(), fleet.Address(200<<16+uint32(least.Count))
			slice.ResourceVersion = "" // whatever it is
			least.Count++
			mu.Lock()
			asked[address.String()] = time.Now()
			mu.Unlock()
			group.Go(func() error { return p.Move(ctx, slice, export.AnnotationTriggerTime, address) })
			return nil
		})
		return errors.Join(group.Wait(), err)
	})
	if err == nil {
		err = wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			mu.Lock()
			defer mu.Unlock()
			return len(asked) == 0, nil
		})
	}
	events.Stop()
	<-ended
	least.P50, least.P99 = quantile(took, 0.5), quantile(took, 0.99)
	return err
}

// An opener is the method Watch of a client of client-go.
type opener func(context.Context, metav1.ListOptions) (watch.Interface, error)

// open opens a watch, reads it, and counts its events.
func open(ctx context.Context, group *errgroup.Group, watch opener, options metav1.ListOptions, events *atomic.Int64) error {
	w, err := watch(ctx, options)
	if err != nil {
		return err
	}
	group.Go(func() error {
		defer w.Stop()
		for range w.ResultChan() {
			events.Add(1)
		}
		if ctx.Err() == nil {
			return errors.New("a watch ended")
		}
		return nil
	})
	return nil
}

// rest opens the watches of a controller, and renews the Lease of its heartbeat. Nothing changes but heartbeats.
func (p *plain) rest(ctx context.Context, least *leastTime) error {
	secrets, err := p.CoreV1().Secrets(clusterset.Namespace).List(ctx, metav1.ListOptions{LabelSelector: member.ClusterLabel})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	var heartbeats, local atomic.Int64
	for i := range secrets.Items {
		if err := follow(ctx, group, &secrets.Items[i], &heartbeats); err != nil {
			return err
		}
	}
	core, mcs := p.CoreV1(), p.MCS.MulticlusterV1beta1()
	for _, each := range []opener{
		core.Services("").Watch, p.DiscoveryV1().EndpointSlices("").Watch, core.Namespaces().Watch, core.Nodes().Watch,
		core.Secrets(clusterset.Namespace).Watch, mcs.ServiceImports("").Watch, mcs.ServiceExports("").Watch,
	} {
		if err := open(ctx, group, each, metav1.ListOptions{}, &local); err != nil {
			return err
		}
	}
	// The API server sends all objects first.
	if err := wait.PollUntilContextTimeout(ctx, time.Second, time.Minute, false, func(context.Context) (bool, error) {
		arrived := local.Swap(0)
		return arrived == 0, nil
	}); err != nil {
		return err
	}
	least.Took, least.CPU, err = during(os.Getpid(), func() error { return p.renew(ctx) })
	cancel()
	return errors.Join(err, group.Wait())
}

// follow opens the watches of a member.
func follow(ctx context.Context, group *errgroup.Group, secret *corev1.Secret, events *atomic.Int64) error {
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[member.KubeconfigKey])
	if err != nil {
		return err
	}
	client, err := fleet.NewClient(config)
	if err != nil {
		return err
	}
	leases, published := client.CoordinationV1().Leases(clusterset.Namespace), client.DiscoveryV1().EndpointSlices("")
	list, err := published.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	id := secret.Labels[member.ClusterLabel]
	return errors.Join(
		open(ctx, group, leases.Watch, metav1.ListOptions{
			FieldSelector: "metadata.name=" + member.HeartbeatLease, ResourceVersion: list.ResourceVersion,
		}, events),
		open(ctx, group, published.Watch, metav1.ListOptions{
			LabelSelector: mcsv1beta1.LabelSourceCluster + "=" + id, ResourceVersion: list.ResourceVersion,
		}, events))
}

// renew renews a Lease as a heartbeat is.
func (p *plain) renew(ctx context.Context) error {
	leases := p.CoordinationV1().Leases(clusterset.Namespace)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s%d", floorPrefix, os.Getpid())}}
	lease, err := leases.Create(ctx, lease, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return fleet.Every(ctx, liveness.HeartbeatInterval, p.lasts, func() error {
		lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
		lease, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		return err
	})
}
