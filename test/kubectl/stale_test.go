// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// explains waits until stale/web, whose cluster west is stale, is explained as README.md shows it of shop/web.
func (b *bed) explains(t *testing.T) {
	t.Helper()
	readme, err := os.ReadFile("../../README.md")
	must(t, err)
	_, shown, found := strings.Cut(string(readme), "$ kubectl clusterset explain shop/web --contexts east\n")
	shown, _, closed := strings.Cut(shown, "```")
	if !found || !closed {
		t.Fatal("README.md shows no explanation of shop/web")
	}
	want := stable(strings.NewReplacer("shop/web", "stale/web", "web.shop.svc", "web.stale.svc").Replace(shown))
	eventually(t, "the explanation", func() error {
		if got := stable(b.do(t, append([]string{"explain", "stale/web", "--contexts", "east"}, b.dnsFlags()...)...)); got != want {
			return fmt.Errorf("got\n%s\nwant\n%s", got, want)
		}
		return nil
	})
}

// export exports a service in clusters, in that order.
func (b *bed) export(t *testing.T, service string, clusters ...*cluster) {
	t.Helper()
	for _, c := range clusters {
		b.do(t, "export", service, "--contexts", c.Name())
	}
}

// testExport exports a Service that the controller has not seen yet, though its export: that is waited for, and no failure.
func testExport(t *testing.T, b *bed) {
	b.namespace(t, "exported", b.all()...)
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
	b.service(t, b.east, "exported", "late", 80, "10.64.0.20")
	got := b.run(t, "export", "exported/late", "--contexts", "east", "--timeout", "2s")
	must(t, b.east.controller.Thaw())
	if got.status == 0 || !strings.Contains(got.err, "to observe Service exported/late") {
		t.Errorf("exported while the controller stands still: %+v", got)
	}
	b.export(t, "exported/late", b.east)
	b.do(t, "unexport", "exported/late", "--contexts", "east")
}

// testStale cuts a cluster off: explain says what that does, and check what fixes it.
func testStale(t *testing.T, b *bed) {
	b.namespace(t, "stale", b.all()...)
	b.service(t, b.east, "stale", "web", 80, "10.64.0.10")
	b.service(t, b.west, "stale", "web", 80, "10.65.0.10")
	b.export(t, "stale/web", b.east, b.west)
	b.service(t, b.west, "stale", "late", 80, "10.65.0.12")
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
		b.explains(t)
	})
}
