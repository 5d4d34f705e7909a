// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/canary"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/tally"
)

// lasting is how long each fault lasts: longer than it takes to demote a member that is cut off.
const lasting = 6 * time.Second

// noReason: what is no cut of the way to a cluster demotes none.
func noReason(t *testing.T, b *bed) {
	namespace := b.namespace(t)
	s := service{namespace: namespace, name: "calm", ports: http80}
	b.east.deploy(t, s, 2) // one in each zone
	b.west.deploy(t, s, 1)
	client := b.west.client(t, namespace, 0)
	for _, reader := range b.all() {
		for _, source := range b.all() {
			if source != reader {
				reader.awaitPath(t, source, string(canary.Reachable))
			}
		}
	}
	for _, fault := range []struct {
		name  string
		begin func(t *testing.T, b *bed) (end func())
		// loses is set if connections fail: a demotion would be of use, but not for the others.
		loses bool
	}{
		{"one of two zones of east is cut from west", cutZone, true},
		{"the CPU is saturated", saturate, false},
		{"the API server of east answers late", slowAPI, false},
		{"the controllers of east and west restart at once", restartAll, false},
		{"the controllers of east are replaced one by one", restartInTurn, false},
	} {
		timeout := map[bool]time.Duration{true: 300 * time.Millisecond, false: lossless}[fault.loses]
		watched := client.stream(t, "watch", "-network", "tcp4", "-timeout", timeout.String(), s.at(80))
		watched.only(t, time.Now(), "east", "west")
		began := time.Now()
		check := b.neverDemoted(t, fault.name)
		end := fault.begin(t, b)
		for time.Since(began) < lasting {
			time.Sleep(200 * time.Millisecond) //nolint:forbidigo // how long the fault lasts
		}
		counted := tally.New(watched.since(began)...)
		end()
		check()
		if !fault.loses && counted.Lost() > 0 || counted.Clusters()["east"] == 0 {
			t.Errorf("%s: %s", fault.name, counted)
		}
		watched.stop()
		b.figures.add(fault.name, counted, "no member is demoted")
	}
}

// neverDemoted looks at the state of all members until check is called, which fails the test if one was not fresh.
func (b *bed) neverDemoted(t *testing.T, during string) (check func()) {
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			for _, reader := range b.all() {
				leases, err := reader.CoordinationV1().Leases(system).List(ctx, metav1.ListOptions{})
				if err != nil {
					continue // its API server is late
				}
				for i := range leases.Items {
					lease := &leases.Items[i]
					if state := lease.Annotations[memberstate.StateAnnotation]; state != "" && state != "fresh" {
						t.Errorf("%s: %s of %s is %s, path %s", during, lease.Name, reader.Name(), state,
							lease.Annotations[memberstate.PathAnnotation])
						return
					}
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	return func() {
		stop()
		<-ended
	}
}

// cutZone: west does not reach the pods of one node of east, with one of its two canaries. The leading controller of east
// is on the other one: what it sees from a node that is cut off would demote west.
func cutZone(t *testing.T, b *bed) (end func()) {
	zone, west := b.east.nodes[0].pods, b.west.Options().PodCIDRs
	if b.east.leading(t) == b.east.replicas[0] {
		zone = b.east.nodes[1].pods
	}
	undo, _ := b.drop(t, []way{{zone, west}, {west, zone}}, "")
	return undo
}

// saturate keeps each CPU busy with many processes.
func saturate(t *testing.T, b *bed) (end func()) {
	var busy []*program
	for i := range 12 * runtime.NumCPU() {
		busy = append(busy, b.start(t, process.Spec{
			Name: fmt.Sprintf("busy-%d", i), Path: "/bin/sh", Args: []string{"-c", "while :; do :; done"},
			LogFile: b.east.Directory() + "/busy.log",
		}))
	}
	return func() {
		for _, each := range busy {
			each.stop(t)
		}
	}
}

// slowAPI: answers take up to 2 s.
func slowAPI(t *testing.T, b *bed) (end func()) {
	for began := time.Now(); time.Since(began) < lasting; {
		must(t, b.east.APIServer().Freeze())
		time.Sleep(2 * time.Second) //nolint:forbidigo // how long the fault lasts
		must(t, b.east.APIServer().Thaw())
		time.Sleep(500 * time.Millisecond) //nolint:forbidigo // how long the fault lasts
	}
	return func() {}
}

// restartAll: so that no replica that stands by takes over.
func restartAll(t *testing.T, b *bed) (end func()) {
	var again []func()
	for _, r := range slices.Concat(b.east.replicas, b.west.replicas) {
		again = append(again, r.stop(t))
	}
	for _, await := range again {
		await()
	}
	return func() {}
}

// restartInTurn: each replica leaves the canaries before it ends, as the chart has it. One of them leads.
func restartInTurn(t *testing.T, b *bed) (end func()) {
	for i, r := range b.east.replicas {
		if i > 0 {
			b.east.awaitCanaries(t, len(b.east.replicas))
		}
		r.setReady(t, false)
		b.east.awaitCanaries(t, len(b.east.replicas)-1)
		r.stop(t)()
		r.setReady(t, true)
	}
	return func() {}
}

// stop ends the replica, and returns what waits until it runs again.
func (r *replica) stop(t testing.TB) (await func()) {
	t.Helper()
	old := r.running.Load()
	must(t, old.Stop(t.Context(), patience))
	return func() {
		t.Helper()
		eventually(t, r.identity()+" to run again", func(context.Context) error {
			if r.running.Load() == old {
				return errors.New("it does not")
			}
			return nil
		})
	}
}

// leading returns the replica that leads.
func (c *cluster) leading(t testing.TB) (leading *replica) {
	t.Helper()
	eventually(t, "a leader in "+c.Name(), func(ctx context.Context) error {
		for _, r := range c.replicas {
			text, err := r.command(ctx, "curl", "--silent", "http://127.0.0.1:8080/metrics")
			if err != nil {
				return err
			}
			if strings.Contains(text, "\nclusterset_controller_leader 1\n") {
				leading = r
				return nil
			}
		}
		return errors.New("none leads")
	})
	return leading
}

// awaitCanaries waits until the heartbeat of the cluster names so many canaries.
func (c *cluster) awaitCanaries(t testing.TB, count int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d canaries of %s", count, c.Name()), func(ctx context.Context) error {
		lease, err := c.CoordinationV1().Leases(system).Get(ctx, member.HeartbeatLease, metav1.GetOptions{})
		if err != nil {
			return err
		}
		canaries, err := canary.Decode(member.CanariesOf(lease, member.HeartbeatCanariesAnnotation))
		if err == nil && len(canaries) != count {
			err = fmt.Errorf("they are %v", canaries)
		}
		return err
	})
}
