// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/utils/ptr"
)

// writes counts the writes that an API server was asked for, by verb and
// resource, from its own metrics. Leases and Events are left out, and what only
// Kubernetes writes.
func (c *cluster) writes(ctx context.Context) (map[string]float64, error) {
	return c.writesWith(ctx, nil)
}

// writesWith is writes that were answered with a code, nil for any.
func (c *cluster) writesWith(ctx context.Context, code *int) (map[string]float64, error) {
	text, err := c.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	counts := map[string]float64{}
	for _, metric := range families["apiserver_request_total"].GetMetric() {
		labels := map[string]string{}
		for _, pair := range metric.GetLabel() {
			labels[pair.GetName()] = pair.GetValue()
		}
		if !slices.Contains([]string{"services", "endpointslices", "serviceimports", "serviceexports"}, labels["resource"]) ||
			!slices.Contains([]string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}, labels["verb"]) || labels["dry_run"] != "" {
			continue
		}
		if code != nil && labels["code"] != strconv.Itoa(*code) {
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

// quiet waits until the API servers are asked for no write for a while. It
// fails where they never come to rest.
func quiet(t testing.TB, clusters ...*cluster) {
	t.Helper()
	restFor(t, 3*time.Second, clusters...)
}

// restFor is quiet for a while of the given length.
func restFor(t testing.TB, rest time.Duration, clusters ...*cluster) {
	t.Helper()
	sum := func(ctx context.Context) (string, error) {
		var all []string
		for _, c := range clusters {
			counts, err := c.writes(ctx)
			if err != nil {
				return "", err
			}
			for name, count := range counts {
				all = append(all, fmt.Sprintf("%s: %s %v", c.Name(), name, count))
			}
		}
		slices.Sort(all)
		return strings.Join(all, "\n"), nil
	}
	last, since := "", time.Now()
	eventually(t, "rest", func(ctx context.Context) error {
		now, err := sum(ctx)
		if err != nil {
			return err
		}
		if now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) < rest {
			return fmt.Errorf("writes go on:\n%s", now)
		}
		return nil
	})
}

// TestNoWritesAtRest: a second pass, and a restart, write nothing but Leases.
func TestNoWritesAtRest(t *testing.T) {
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
	restFor(t, 30*time.Second, east, west)

	before, err := east.writes(t.Context())
	must(t, err)
	stop()
	east.start(t)
	eventually(t, "synced", east.metric(t, "clusterset_controller_member_synced", map[string]string{"cluster": "west"}, 1))
	eventually(t, "all looked at", east.metric(t, "clusterset_controller_queue_length", nil, 0))
	quiet(t, east)
	after, err := east.writes(t.Context())
	must(t, err)
	if fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("a restart wrote:\nbefore %v\nafter  %v", before, after)
	}
}

// TestEachWriteIsMadeOnce: where many services come at once, the caches lag
// behind what was just written, and nothing is created or updated twice for
// that.
func TestEachWriteIsMadeOnce(t *testing.T) {
	east, west := bed(t)
	demo := namespace(t, east, west)
	const count = 80
	var all string
	for i := range count {
		of := headless
		if i%3 == 0 {
			of = service
		}
		name := fmt.Sprintf("web-%d", i)
		all += of(name, fmt.Sprintf("10.64.1.%d", i+1)) + serviceExport(name)
	}
	east.create(t, demo, all)
	type counts struct{ all, conflicts map[string]float64 }
	look := func(c *cluster) (now counts) {
		var err error
		now.all, err = c.writes(t.Context())
		must(t, err)
		now.conflicts, err = c.writesWith(t.Context(), ptr.To(http.StatusConflict))
		must(t, err)
		return now
	}
	before := map[*cluster]counts{east: look(east), west: look(west)}
	joined(t, east, west)
	for i := range count {
		of := "Headless"
		if i%3 == 0 {
			of = "ClusterSetIP"
		}
		expect(t, key(demo, fmt.Sprintf("web-%d", i)), fmt.Sprintf("%s of east Ready [east/10.64.1.%d]", of, i+1), east, west)
	}
	quiet(t, east, west)
	for c, was := range before {
		now := look(c)
		if created := now.all["POST endpointslices"] - was.all["POST endpointslices"]; created != count {
			t.Errorf("%s: %v creations were asked for, for %d slices", c.Name(), created, count)
		}
		for name, conflicts := range now.conflicts {
			if again := conflicts - was.conflicts[name]; again > 0 {
				t.Errorf("%s: %s was refused as stale %v times", c.Name(), name, again)
			}
		}
		t.Logf("%s: %v, before %v", c.Name(), now.all, was.all)
	}
}
