// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"fmt"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/index"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/watch"
)

func TestAnswersGoOnThroughAMinuteWithoutTheAPIServer(t *testing.T) {
	t.Parallel()
	const outage = time.Minute
	cluster := breakable(t)[0]
	demo := namespace(t, cluster, "demo")
	demo.apply(web("v1beta1", "10.42.0.1"))
	demo.apply(serviceImport("v1beta1", "db", "{type: Headless, ports: []}") +
		endpointSlice("db", "east", "IPv4", "[]", "{addresses: [10.1.0.1], hostname: db-0}"))
	ready := freeAddress(t)
	config := admin(t, cluster)
	s := beside(t, config, ready)
	source, leave, err := watch.Open(watch.Options{Kubeconfig: config}, silent{}) // that of the server
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	known := []struct {
		qname string
		qtype uint16
		want  string
	}{
		{webName, dns.TypeA, "10.42.0.1"},
		{webName, dns.TypeAAAA, "NODATA"},
		{"db.demo.svc.clusterset.local.", dns.TypeA, "10.1.0.1"},
		{"db-0.east.db.demo.svc.clusterset.local.", dns.TypeA, "10.1.0.1"},
		{"none.demo.svc.clusterset.local.", dns.TypeA, "NXDOMAIN"},
		{otherName, dns.TypeA, "192.0.2.1"},
	}
	for _, k := range known {
		s.until(k.qname, k.qtype, k.want)
	}
	serial := soaSerial(t, s)

	if err := cluster.APIServer().Kill(); err != nil {
		t.Fatal(err)
	}
	wait(t, func() error {
		for _, state := range source.States() {
			if state.Healthy {
				return fmt.Errorf("the watch of %s is healthy without an API server", state.Resource)
			}
		}
		return nil
	})
	told := source.States()
	over := time.After(outage)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for asked := 0; over != nil; asked++ {
		k := known[asked%len(known)]
		s.expect(k.qname, k.qtype, k.want)
		select {
		case <-tick.C:
		case <-over:
			over = nil
		}
	}
	expectReady(t, ready)
	if got := soaSerial(t, s); got != serial {
		t.Errorf("the serial moved from %d to %d", serial, got)
	}
	for i, state := range source.States() {
		if state != told[i] {
			t.Errorf("the outage led from %+v to %+v", told[i], state)
		}
		age := metric(t, "coredns_multicluster_last_sync_timestamp_seconds", string(state.Resource))
		if age == 0 || age > float64(state.Synced.UnixNano())/float64(time.Second) {
			t.Errorf("the metric says that %s were told at %f, which was at %v", state.Resource, age, state.Synced)
		}
		if metric(t, "coredns_multicluster_watch_healthy", string(state.Resource)) != 0 {
			t.Errorf("the metric says that the watch of %s is healthy", state.Resource)
		}
	}

	if err := cluster.APIServer().Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	demo.apply(web("v1beta1", "10.42.0.2"))
	s.until(webName, dns.TypeA, "10.42.0.2")
	wait(t, func() error {
		for i, state := range source.States() {
			if !state.Healthy || !state.Synced.After(told[i].Synced) {
				return fmt.Errorf("after the outage: %+v", state)
			}
		}
		return nil
	})
}

// Where nothing changes, the age of what is known is told by bookmarks alone.
func TestBookmarksKeepWhatIsKnownYoung(t *testing.T) {
	t.Parallel()
	source, leave, err := watch.Open(watch.Options{Kubeconfig: admin(t, clusters(t)[0])}, silent{})
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	defer source.Release(source.View(&index.Config{Zones: []string{"clusterset.local."}, TTL: 5}))
	<-source.Synced()
	before := source.States()
	deadline := time.After(3 * time.Minute) // bookmarks come every minute or two
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for waiting := true; waiting; {
		select {
		case <-tick.C:
			waiting = false
			for i, state := range source.States() {
				waiting = waiting || !state.Synced.After(before[i].Synced)
			}
		case <-deadline:
			t.Fatalf("the states are %+v, and were %+v", source.States(), before)
		}
	}
}
