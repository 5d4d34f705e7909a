// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// requests counts the writes that an API server was asked for by anybody, by
// verb and resource, from its own metrics. Leases and Events are left out, and
// what only Kubernetes writes.
func (c *cluster) requests(ctx context.Context) (map[string]float64, error) {
	stream, err := c.CoreV1().RESTClient().Get().AbsPath("/metrics").SetHeader("Accept-Encoding", "identity").Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	const name = "apiserver_request_total"
	// All metrics of an API server are megabytes.
	var ofRequests bytes.Buffer
	for lines := bufio.NewScanner(stream); ; {
		if !lines.Scan() {
			if err := lines.Err(); err != nil {
				return nil, err
			}
			break
		}
		if line := lines.Bytes(); bytes.HasPrefix(line, []byte(name+"{")) || bytes.HasPrefix(line, []byte("# TYPE "+name+" ")) {
			ofRequests.Write(append(line, '\n'))
		}
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(&ofRequests)
	if err != nil {
		return nil, err
	}
	counts := map[string]float64{}
	for _, metric := range families[name].GetMetric() {
		labels := map[string]string{}
		for _, pair := range metric.GetLabel() {
			labels[pair.GetName()] = pair.GetValue()
		}
		if !slices.Contains(countedResources, labels["resource"]) ||
			!slices.Contains([]string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}, labels["verb"]) || labels["dry_run"] != "" {
			continue
		}
		name := labels["verb"] + " " + labels["resource"]
		if labels["subresource"] != "" {
			name += "/" + labels["subresource"]
		}
		counts[name] += metric.GetCounter().GetValue()
	}
	return counts, nil
}

// restFor waits until API servers were asked for no write for a while, as
// their own metrics tell. It fails where they never come to rest.
func restFor(t testing.TB, rest time.Duration, clusters ...*cluster) {
	t.Helper()
	sum := func() string {
		var all []string
		for _, c := range clusters {
			counts, err := c.requests(t.Context())
			must(t, err)
			if len(counts) == 0 {
				t.Fatalf("the metrics of %s tell of no write at all", c.Name())
			}
			for name, count := range counts {
				all = append(all, fmt.Sprintf("%s: %s %v", c.Name(), name, count))
			}
		}
		slices.Sort(all)
		return strings.Join(all, "\n")
	}
	begin, last := time.Now(), sum()
	since := time.Now()
	for ticker := time.NewTicker(rest / 3); time.Since(since) < rest; {
		<-ticker.C
		if now := sum(); now != last {
			last, since = now, time.Now()
		}
		if time.Since(begin) > rest+patience {
			t.Fatalf("writes go on:\n%s", last)
		}
	}
}

// TestNoWritesAtRest: a second pass, and a restart, write nothing but Leases.
func TestNoWritesAtRest(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	east.join(t, west)
	west.join(t, east)
	stop := east.start(t)
	west.start(t)
	demo := namespace(t, east, west)
	var all string
	for i := range 10 {
		all += service(fmt.Sprintf("web-%d", i), fmt.Sprintf("10.64.1.%d", i+1)) + serviceExport(fmt.Sprintf("web-%d", i))
		all += headless(fmt.Sprintf("db-%d", i), fmt.Sprintf("10.64.2.%d", i+1)) + serviceExport(fmt.Sprintf("db-%d", i))
	}
	east.create(t, demo, all)
	west.create(t, demo, service("web-0", "10.65.1.1")+serviceExport("web-0")+headless("web-1", "10.65.1.2")+serviceExport("web-1"))
	expect(t, key(demo, "web-0"), "ClusterSetIP of east,west Ready [east/10.64.1.1 west/10.65.1.1]", east, west)
	expect(t, key(demo, "db-9"), "Headless of east Ready [east/10.64.2.10]", east, west)
	quietFor(t, longest, east, west)

	before := east.written.String()
	stop()
	east.start(t)
	eventually(t, "synced", east.metric(t, "clusterset_controller_member_synced", map[string]string{"cluster": "west"}, 1))
	eventually(t, "all looked at", east.metric(t, "clusterset_controller_queue_length", nil, 0))
	quiet(t, east)
	if after := east.written.String(); after != before {
		t.Errorf("a restart wrote:\nbefore %s\nafter  %s", before, after)
	}
}

// TestEachWriteIsMadeOnce: where many services come at once, the caches lag
// behind what was just written, and nothing is created or updated twice for
// that.
func TestEachWriteIsMadeOnce(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	demo := namespace(t, east, west)
	const count = 40
	var all string
	var names []string
	for i := range count {
		of := headless
		if i%3 == 0 {
			of = service
		}
		name := fmt.Sprintf("web-%d", i)
		all += of(name, fmt.Sprintf("10.64.1.%d", i+1)) + serviceExport(name)
		names = append(names, name)
	}
	east.create(t, demo, all)
	joined(t, east, west)
	slices.Sort(names)
	for _, c := range []*cluster{east, west} {
		c.importsOf(t, demo, strings.Join(names, " "))
	}
	for i := range count {
		of := "Headless"
		if i%3 == 0 {
			of = "ClusterSetIP"
		}
		expect(t, key(demo, fmt.Sprintf("web-%d", i)), fmt.Sprintf("%s of east Ready [east/10.64.1.%d]", of, i+1), east, west)
	}
	quiet(t, east, west)
	for _, c := range []*cluster{east, west} {
		if created := c.written.of("POST endpointslices"); created != count {
			t.Errorf("%s: %v creations were asked for, for %d slices", c.Name(), created, count)
		}
		if stale := c.written.stale(); len(stale) > 0 {
			t.Errorf("%s: writes were refused as stale: %v", c.Name(), stale)
		}
		t.Logf("%s: %v", c.Name(), c.written)
	}
}
