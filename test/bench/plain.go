// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	watchtools "k8s.io/client-go/tools/watch"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/test/bench/fleet"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// plainCommand makes this program, in a separate process, do the least that a controller must do for changes: it knows
// in advance what to write. It prints its times as JSON.
const plainCommand = "plain"

// leastTime has the times that changes take a client that does nothing else.
type leastTime struct {
	// CPU is the processor time of all changes, and Count is their number.
	CPU   time.Duration
	Count int
	// P50 and P99 are quantiles of the time from a request to its watch event.
	P50, P99 float64
}

// floorOfChanges limits the time for which the plain client changes endpoints. Nothing grows in it, so that is enough.
const floorOfChanges = 2 * time.Minute

// atOnce is the number of parallel requests of a client that replaces the controller.
const atOnce = 16

// floorPrefix is the prefix of the namespaces to which such a client writes. They must exist.
const floorPrefix = "floor-"

// floors measures clients that replace the controller, and compares them with the controller.
func (b *bed) floors(ctx context.Context) error {
	local := b.local()
	if err := kill(&local.controller); err != nil {
		return err
	}
	for _, name := range b.shape.Namespaces() {
		if err := local.objects.Namespaces(ctx, floorPrefix+name); err != nil {
			return err
		}
	}
	b.say("floor of the import")
	all, err := madeIn(ctx, local.objects)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := copyAll(ctx, local.objects, all, floorPrefix, atOnce); err != nil {
		return err
	}
	imported := time.Since(began)
	changed, err := b.plain(ctx)
	if err != nil {
		return err
	}
	for _, f := range b.figures {
		switch f.what {
		case whatImport:
			f.compare(float64(imported), ratio(1.3))
		case whatMedian:
			f.compare(changed.P50, nil)
		case whatTail:
			f.compare(changed.P99, ratio(2))
		case whatPerChange:
			f.compare(float64(changed.CPU)/float64(changed.Count), nil)
		}
	}
	return nil
}

// plain runs the plain client.
func (b *bed) plain(ctx context.Context) (least leastTime, err error) {
	b.say("floor of changes")
	credential, err := b.local().WriteCredential(ctx, clusterset.Namespace, controllerProgram)
	if err != nil {
		return least, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(b.bin, "bench"), plainCommand, credential,
		strconv.Itoa(b.rate), min(b.changes, floorOfChanges).String())
	output, err := process.Output(cmd)
	if err != nil {
		return least, err
	}
	return least, json.Unmarshal([]byte(output), &least)
}

// runPlain is the plain client in its own process. Its arguments are a kubeconfig, the rate, and how long slices
// change.
func runPlain(ctx context.Context, args []string, stdout io.Writer) error {
	config, err := clientcmd.BuildConfigFromFlags("", args[0])
	if err != nil {
		return err
	}
	client, err := fleet.NewClient(config)
	rate, err1 := strconv.Atoi(args[1])
	lasts, err2 := time.ParseDuration(args[2])
	if err := errors.Join(err, err1, err2); err != nil {
		return err
	}
	least, err := plainChanges(ctx, client, rate, lasts)
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(least)
}

// plainChanges changes the slices that copyAll wrote, at this rate.
func plainChanges(ctx context.Context, c *fleet.Client, rate int, lasts time.Duration) (least leastTime, err error) {
	list, err := c.DiscoveryV1().EndpointSlices("").List(ctx, metav1.ListOptions{LabelSelector: mcsv1beta1.LabelServiceName})
	if err != nil {
		return least, err
	}
	own := slices.DeleteFunc(list.Items, func(slice discoveryv1.EndpointSlice) bool {
		return !strings.HasPrefix(slice.Namespace, floorPrefix)
	})
	rand.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] })
	// A busy API server ends the watch of a slow client.
	events, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return c.DiscoveryV1().EndpointSlices("").Watch(ctx, options)
		},
	})
	if err != nil {
		return least, err
	}
	var mu sync.Mutex
	asked := map[string]time.Time{} // requested changes without a watch event, by their new address
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
	_, least.CPU, err = during(os.Getpid(), func() error {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(atOnce) // does not send more to an API server that falls behind
		err := fleet.Every(ctx, time.Second/time.Duration(rate), lasts, func() error {
			slice, address := own[least.Count%len(own)].DeepCopy(), fleet.Address(200<<16+uint32(least.Count))
			slice.ResourceVersion = "" // update it in any version
			least.Count++
			mu.Lock()
			asked[address.String()] = time.Now()
			mu.Unlock()
			group.Go(func() error { return c.Move(ctx, slice, export.AnnotationTriggerTime, address) })
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
	return least, err
}
