// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// explains waits until a service is explained as the file of that name below testdata has it.
func (b *bed) explains(t *testing.T, name string, args ...string) {
	t.Helper()
	args = append(append([]string{"explain"}, args...), b.dnsFlags()...)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		golden(t, name, b.settled(t, args))
		return
	}
	want, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	must(t, err)
	eventually(t, name, func() error {
		if got := stable(b.do(t, args...)); got != string(want) {
			return fmt.Errorf("got\n%s\nwant\n%s", got, want)
		}
		return nil
	})
}

// TestReadmeShowsAnExplanation holds what README.md shows against the explanation of a service whose cluster is stale,
// but for its names.
func TestReadmeShowsAnExplanation(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	must(t, err)
	_, shown, found := strings.Cut(string(readme), "$ kubectl clusterset explain shop/web --contexts east\n")
	shown, _, closed := strings.Cut(shown, "```")
	if !found || !closed {
		t.Fatal("README.md shows no explanation of shop/web")
	}
	golden(t, "stale", strings.NewReplacer("shop/web", "stale/web", "web.shop.svc", "web.stale.svc").Replace(shown))
}

// settled is what a command says once it has said the same for a while.
func (b *bed) settled(t *testing.T, args []string) string {
	t.Helper()
	var last string
	since := time.Now()
	eventually(t, strings.Join(args, " "), func() error {
		if got := b.do(t, args...); stable(got) != stable(last) {
			last, since = got, time.Now()
		}
		if time.Since(since) < 4*time.Second {
			return fmt.Errorf("it still changes")
		}
		return nil
	})
	return last
}

// export exports a service in clusters, in that order.
func (b *bed) export(t *testing.T, service string, clusters ...*cluster) {
	t.Helper()
	for _, c := range clusters {
		b.do(t, "export", service, "--contexts", c.Name())
	}
}

// testExport exports a service, sees it in the status, and takes it back.
func testExport(t *testing.T, b *bed) {
	b.namespace(t, "exported", b.all()...)
	b.service(t, b.east, "exported", "web", false, 80, "10.64.0.10")
	if got := b.run(t, "export", "exported/nothing", "--contexts", "east"); got.status != 1 ||
		!strings.Contains(got.err, "Service exported/nothing does not exist") {
		t.Errorf("the export of no Service: %+v", got)
	}
	b.do(t, "unexport", "exported/nothing", "--contexts", "east")
	if out := b.do(t, "export", "web", "-n", "exported", "--context", "east"); out != "east exports exported/web\n" {
		t.Errorf("got %q", out)
	}
	b.do(t, "export", "exported/web", "--contexts", "east") // again
	eventually(t, "the import in west", func() error {
		var set struct {
			Clusters []struct {
				Imports []struct {
					Name, Reason string
					Clusters     []string
					Ready        int
				}
			}
		}
		out := b.do(t, "status", "--contexts", "west", "-o", "json")
		if err := json.Unmarshal([]byte(out), &set); err != nil {
			return err
		}
		if imports := set.Clusters[0].Imports; len(imports) != 1 || imports[0].Name != "web" ||
			imports[0].Reason != "Ready" || imports[0].Ready != 1 {
			return fmt.Errorf("got %s", out)
		}
		return nil
	})
	b.do(t, "unexport", "exported/web", "--contexts", "east,west")
	b.explains(t, "taken-back", "exported/web", "--contexts", "west")
	b.exportBeforeItsService(t)
}

// exportBeforeItsService exports a Service that the controller has not seen
// yet, though its export: that is waited for, and no failure.
func (b *bed) exportBeforeItsService(t *testing.T) {
	t.Helper()
	b.apply(t, b.east,
		"{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {namespace: exported, name: late}}")
	eventually(t, "no Service", func() error {
		reason := b.shell(t, `kubectl --context east -n exported get serviceexport late -o jsonpath='{.status.conditions[?(@.type=="Valid")].reason}'`)
		if reason != "NoService" {
			return fmt.Errorf("the reason is %q", reason)
		}
		return nil
	})
	must(t, b.east.controller.Freeze())
	b.service(t, b.east, "exported", "late", false, 80, "10.64.0.20")
	got := b.run(t, "export", "exported/late", "--contexts", "east", "--timeout", "2s")
	must(t, b.east.controller.Thaw())
	if got.status == 0 || !strings.Contains(got.err, "to observe Service exported/late") {
		t.Errorf("exported while the controller stands still: %+v", got)
	}
	b.export(t, "exported/late", b.east)
	b.do(t, "unexport", "exported/late", "--contexts", "east")
}

// testExplain has what explain says of real answers, endpoints and hints. TestExplain of controller/statusz has all that a
// controller may find.
func testExplain(t *testing.T, b *bed) {
	t.Run("healthy", func(t *testing.T) {
		b.namespace(t, "healthy", b.all()...)
		b.service(t, b.east, "healthy", "web", false, 80, "10.64.0.10", "10.64.0.11")
		b.service(t, b.west, "healthy", "web", false, 80, "10.65.0.10")
		b.service(t, b.west, "healthy", "db", true, 5432, "10.65.0.20", "10.65.0.21")
		b.export(t, "healthy/web", b.east, b.west)
		b.export(t, "healthy/db", b.west)
		b.explains(t, "healthy", "healthy/web", "--contexts", "north")
		b.explains(t, "healthy-headless", "healthy/db", "--contexts", "east")
		b.service(t, b.west, "healthy", "idle", true, 5432)
		b.export(t, "healthy/idle", b.west)
		b.explains(t, "headless-idle", "healthy/idle", "--contexts", "east")
		b.explains(t, "healthy-wide", "healthy/web", "--contexts", "east", "-o", "wide")
	})
	t.Run("preference", func(t *testing.T) { testExplainPreference(t, b) })
	t.Run("programs", func(t *testing.T) {
		var list struct {
			Clusters []struct {
				Service, Summary string
				Problems         []struct{ What, Fix string }
			}
		}
		must(t, json.Unmarshal([]byte(b.do(t, "explain", "healthy/nothing", "--contexts", "west", "-o", "json")), &list))
		if len(list.Clusters) != 1 || list.Clusters[0].Service != "healthy/nothing" || len(list.Clusters[0].Problems) == 0 {
			t.Errorf("got %+v", list)
		}
	})
}

// testExplainPreference says which endpoints come first, and who wanted that.
func testExplainPreference(t *testing.T, b *bed) {
	b.namespace(t, "near", b.all()...)
	prefers := func(c *cluster, name, what string) {
		b.apply(t, c, fmt.Sprintf("{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {namespace: near, name: %s}, spec: {exportedAnnotations: {clusterset-dns.github.io/prefer: %s}}}", name, what))
		b.export(t, "near/"+name, c) // and wait
	}
	b.service(t, b.east, "near", "own", false, 80, "10.64.0.10")
	b.service(t, b.west, "near", "own", false, 80, "10.65.0.10")
	prefers(b.east, "own", "cluster")
	prefers(b.west, "own", "cluster")
	b.explains(t, "prefer-cluster-wide", "near/own", "--contexts", "east", "-o", "wide")

	zones := strings.Fields(
		b.shell(t, "kubectl --context east get nodes -o jsonpath='{.items[*].metadata.labels.topology\\.kubernetes\\.io/zone}'"))
	b.service(t, b.west, "near", "zonal", false, 80, "10.65.0.20")
	b.shell(t,
		`kubectl --context west -n near patch service zonal -p '{"spec":{"trafficDistribution":"PreferSameZone"}}'
kubectl --context west -n near patch endpointslice zonal-manual --type json -p '[{"op":"add","path":"/endpoints/0/zone","value":"`+zones[0]+`"}]'`)
	b.export(t, "near/zonal", b.west)
	b.explains(t, "prefer-zone-wide", "near/zonal", "--contexts", "east", "-o", "wide")
}

// testDrain takes traffic from a cluster and gives it back, which the quickstart does on pods: explain says what fixes it.
func testDrain(t *testing.T, b *bed) {
	b.namespace(t, "drained", b.all()...)
	b.service(t, b.east, "drained", "web", false, 80, "10.64.0.10")
	b.service(t, b.west, "drained", "web", false, 80, "10.65.0.10")
	b.export(t, "drained/web", b.east, b.west)
	b.do(t, "drain", "west", "--contexts", "west,east")
	b.explains(t, "drained", "drained/web", "--contexts", "east")
	b.do(t, "undrain", "west", "--contexts", "west")
}

// testStale cuts a cluster off: explain says what that does, and check what fixes it.
func testStale(t *testing.T, b *bed) {
	b.namespace(t, "stale", b.all()...)
	b.service(t, b.east, "stale", "web", false, 80, "10.64.0.10")
	b.service(t, b.west, "stale", "web", false, 80, "10.65.0.10")
	b.service(t, b.west, "stale", "solo", false, 80, "10.65.0.11")
	b.export(t, "stale/web", b.east, b.west)
	b.export(t, "stale/solo", b.west)
	b.service(t, b.west, "stale", "late", false, 80, "10.65.0.12")
	b.explains(t, "before-stale", "stale/web", "--contexts", "east")
	round := slices.IndexFunc(rounds(), func(round []fault) bool { return round[0].round == cut })
	b.breaks(t, rounds()[round], func() {
		// The way is the one of the controller: the user reaches west still.
		b.export(t, "stale/late", b.west)
		eventually(t, "the status to say so", func() error {
			if out := b.do(t, "status", "--contexts", "east"); !strings.Contains(out, " stale ") {
				return fmt.Errorf("got %s", out)
			}
			return nil
		})
		b.explains(t, "stale", "stale/web", "--contexts", "east")
		b.explains(t, "stale-alone", "stale/solo", "--contexts", "east")
	})
	b.explains(t, "before-stale", "stale/web", "--contexts", "east")
}
