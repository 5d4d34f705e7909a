// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsclient "sigs.k8s.io/mcs-api/pkg/client/clientset/versioned"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/properties"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/link"
)

// A bed is the set, of which west is the member of the version before.
type bed struct {
	east, north, west *cluster
	newer, older      version
	judge             *judge
}

func (b *bed) all() []*cluster { return []*cluster{b.east, b.north, b.west} }

// expect is that of each cluster.
func (b *bed) expect(service, inEast, inNorth, inWest string) {
	b.east.t.Helper()
	b.east.expect(service, inEast)
	b.north.expect(service, inNorth)
	b.west.expect(service, inWest)
}

// everywhere is expect with the same in all.
func (b *bed) everywhere(service, want string) {
	b.east.t.Helper()
	b.expect(service, want, want, want)
}

// share has all clusters serve a service, with the last byte of its addresses, and export it in the order of their
// names.
func (b *bed) share(service string, number int, exported ...string) {
	b.east.t.Helper()
	for i, c := range b.all() {
		c.serve(service, fmt.Sprintf("10.%d.0.%d", 64+i, number))
		c.export(service, nil, exported)
		<-time.After(1100 * time.Millisecond) // ages are whole seconds
	}
}

// of is what is seen of a service of share, with ~ after the names of clusters that are demoted.
func of(number int, names ...string) string {
	var seen []string
	for _, name := range names {
		plain := strings.TrimSuffix(name, "~")
		second := map[string]int{"east": 64, "north": 65, "west": 66}[plain]
		seen = append(seen, fmt.Sprintf("%s/10.%d.0.%d%s", plain, second, number, name[len(plain):]))
	}
	return strings.Join(seen, " ")
}

// hold is how long a state is looked at that must stay.
const hold = 10 * time.Second

// TestSkew goes through all steps. Each rests on the ones before.
func TestSkew(t *testing.T) {
	b := &bed{judge: newJudge()}
	b.newer, b.older = build(t)
	planes := controlplanetest.Start(t, controlplane.Options{Name: "east", Zones: []string{}},
		controlplane.Options{Name: "north", Zones: []string{}}, controlplane.Options{Name: "west", Zones: []string{}})
	b.east = newCluster(t, planes[0], b.newer, "eu", b.judge)
	b.north = newCluster(t, planes[1], b.newer, "us", b.judge)
	b.west = newCluster(t, planes[2], b.older, "eu", b.judge)
	join(t, b.all()...)
	b.east.run(b.newer)
	b.north.run(b.newer)
	b.west.run(b.older)
	for _, plane := range planes {
		b.judge.watch(t, plane)
	}
	table := &strings.Builder{}
	defer func() {
		b.judge.mu.Lock()
		defer b.judge.mu.Unlock()
		t.Logf("%s%d states of slices and %d answers judged\n", table, b.judge.events, b.judge.answers)
	}()
	for _, step := range []struct {
		name string
		do   func(*bed)
	}{
		{"plain exports reach all", plainExports},
		{"an export for others is not imported by the old member", chosenClusters},
		{"a cut-off old member keeps copies, and withdraws them later", cutOff},
		{"an exporter goes back to the version before, and returns", exporterGoesBack},
		{"borders hold in new members, the old one leaves them out", borders},
		{"order, weights and overload: new members apply them", traffic},
		{"what the old member may contribute is limited", trust},
		{"the old member is silent, stops, and returns", silence},
		{"heartbeats with descriptions do not disturb the old member", heartbeats},
		{"the old member is upgraded", upgrade},
		{"it goes back, and its properties are unknown", memberGoesBack},
	} {
		began := time.Now()
		if !t.Run(step.name, func(t *testing.T) {
			for _, c := range b.all() {
				c.t = t
			}
			step.do(b)
			b.judge.verdict(t)
		}) {
			return
		}
		fmt.Fprintf(table, "%5.0f s  %s\n", time.Since(began).Seconds(), step.name)
	}
}

// plainExports: exports without policies are imported in all directions, and follow their endpoints. From here on their
// copies and answers never end in any cluster.
func plainExports(b *bed) {
	b.share(plain, 1)
	for i, c := range b.all() {
		c.serveAs("web", `""`, fmt.Sprintf("10.%d.0.2", 64+i))
		c.export("web", nil, nil)
	}
	b.everywhere(plain, of(1, "east", "north", "west"))
	b.everywhere("web", of(2, "east", "north", "west"))
	for i, c := range b.all() {
		b.judge.keep(c, "10.64.0.1", "10.65.0.1", "10.66.0.1")
		c.serve(plain, fmt.Sprintf("10.%d.0.1", 64+i), fmt.Sprintf("10.%d.0.9", 64+i))
	}
	b.everywhere(plain, "east/10.64.0.1 east/10.64.0.9 north/10.65.0.1 north/10.65.0.9 west/10.66.0.1 west/10.66.0.9")
	for i, c := range b.all() {
		c.serve(plain, fmt.Sprintf("10.%d.0.1", 64+i))
	}
	b.everywhere(plain, of(1, "east", "north", "west"))
}

const ofPay = "east/10.64.0.11"

// chosenClusters: an export is restricted and opened again, also while the controller of the old member is down. The
// old member does not import it even if its id is chosen.
func chosenClusters(b *bed) {
	b.east.serve("pay", "10.64.0.11")
	b.east.export("pay", chosen(""), nil)
	b.everywhere("pay", ofPay)
	restricted := func(clusters string) {
		b.east.t.Helper()
		b.east.export("pay", chosen(clusters), nil)
		b.expect("pay", ofPay, ofPay, "")
		b.judge.forbid(b.west, "10.64.0.11")
	}
	opened := func() {
		b.east.t.Helper()
		b.judge.allow(b.west, "10.64.0.11")
		b.east.export("pay", chosen(""), nil)
		b.everywhere("pay", ofPay)
	}
	restricted("north")
	b.west.restart()
	b.west.holds(hold, "pay", "")
	restricted("north; west")
	b.west.holds(hold, "pay", "")
	opened()
	b.west.stop()
	b.east.export("pay", chosen("north"), nil)
	b.west.start()
	b.west.expect("pay", "")
	b.judge.forbid(b.west, "10.64.0.11")
	b.east.restart()
	b.west.holds(hold, "pay", "")
	opened()
}

// cutOff: what is restricted while the old member cannot read it stays there, also across a restart, and ends when
// contact is back.
func cutOff(b *bed) {
	b.judge.keep(b.west, "10.64.0.11")
	b.west.way(b.east).CutOff(link.Both)
	b.east.export("pay", chosen("north"), nil)
	b.west.holds(staleAfter+hold, "pay", ofPay)
	b.west.restart()
	b.west.holds(hold, "pay", ofPay)
	b.judge.release(b.west, "10.64.0.11")
	b.west.way(b.east).Reconnect()
	b.west.expect("pay", "")
	b.judge.forbid(b.west, "10.64.0.11")
	b.expect("pay", ofPay, ofPay, "")
}

// exporterGoesBack: a controller of the version before publishes a restricted export to all clusters, which
// docs/design/scope.md says, and the next one restricts it again. No copy of a chosen cluster is lost meanwhile.
func exporterGoesBack(b *bed) {
	const ofLedger = "north/10.65.0.12"
	b.north.serve("ledger", "10.65.0.12")
	b.north.export("ledger", chosen("east"), nil)
	b.expect("ledger", ofLedger, ofLedger, "")
	b.judge.forbid(b.west, "10.65.0.12")
	b.west.holds(hold, "ledger", "")
	b.judge.allow(b.west, "10.65.0.12")
	b.east.knows(b.north, "fresh", properties.Annotation, `{"region":"us"}`)
	b.north.run(b.older)
	b.everywhere("ledger", ofLedger)
	b.east.knows(b.north, "fresh", properties.Annotation, "")
	b.north.run(b.newer)
	b.expect("ledger", ofLedger, ofLedger, "")
	b.judge.forbid(b.west, "10.65.0.12")
	b.west.restart()
	b.west.holds(hold, "ledger", "")
	b.east.knows(b.north, "fresh", properties.Annotation, `{"region":"us"}`)
}

// borders: those of exports of new members hold in new members, also for the old one, whose properties are unknown. The
// old member leaves them out. If its export is the oldest, it has none, which a conflict reports.
func borders(b *bed) {
	for service, test := range map[string]struct {
		number int
		within string
	}{"edge": {21, "region=eu"}, "negative": {22, "region!=us"}} {
		b.share(service, test.number, export.AnnotationWithin, test.within)
		b.expect(service, of(test.number, "east"), of(test.number, "east", "north"), of(test.number, "east", "north", "west"))
		b.judge.forbid(b.east, fmt.Sprintf("10.65.0.%d", test.number), fmt.Sprintf("10.66.0.%d", test.number))
		b.judge.forbid(b.north, fmt.Sprintf("10.66.0.%d", test.number))
	}
	b.east.restart()
	b.west.restart()
	for service, number := range map[string]int{"edge": 21, "negative": 22} {
		b.east.holds(hold, service, of(number, "east"))
		b.north.expect(service, of(number, "east", "north"))
		b.west.expect(service, of(number, "east", "north", "west"))
	}
	// The oldest export is of the old member.
	within := []string{export.AnnotationWithin, "region=eu"}
	b.west.serve("open", "10.66.0.23")
	b.west.export("open", nil, within)
	<-time.After(1100 * time.Millisecond)
	b.north.serve("open", "10.65.0.23")
	b.north.export("open", nil, within)
	b.everywhere("open", of(23, "north", "west"))
	client, err := mcsclient.NewForConfig(b.north.Config())
	must(b.north.t, err)
	controlplanetest.Eventually(b.north.t, "conflict", func(ctx context.Context) error {
		exported, err := client.MulticlusterV1beta1().ServiceExports(namespace).Get(ctx, "open", metav1.GetOptions{})
		if err != nil {
			return err
		}
		told := meta.FindStatusCondition(exported.Status.Conditions, "Conflict")
		if told == nil || told.Reason != "AnnotationsConflict" {
			return fmt.Errorf("the conditions are %v", exported.Status.Conditions)
		}
		return nil
	})
}

// traffic: what the old member does not know it leaves out, and what new members make of it does not reach it.
func traffic(b *bed) {
	b.share("tiers", 31, export.AnnotationPrefer, "east > north")
	b.share("weights", 32, export.AnnotationWeights, "west=0")
	b.share("busy", 33)
	b.everywhere("busy", of(33, "east", "north", "west"))
	b.east.export("busy", []string{export.AnnotationSaturated, "true"}, nil)
	ready := []string{"east", "north", "west"}
	for service, test := range map[string]struct {
		number  int
		applied string
	}{
		"tiers": {31, of(31, "east", "north~", "west~")}, "weights": {32, of(32, "east", "north", "west~")},
		"busy": {33, of(33, "east~", "north", "west")},
	} {
		b.expect(service, test.applied, test.applied, of(test.number, ready...))
	}
	// The old member publishes tiers of its export, and applies none.
	for _, c := range []*cluster{b.west, b.north} {
		c.serve("owned", map[*cluster]string{b.west: "10.66.0.34", b.north: "10.65.0.34"}[c])
		c.export("owned", nil, []string{export.AnnotationPrefer, "north"})
		<-time.After(1100 * time.Millisecond)
	}
	b.expect("owned", of(34, "north", "west~"), of(34, "north", "west~"), of(34, "north", "west"))
	b.west.restart()
	b.west.holds(hold, "busy", of(33, ready...))
}

// trust: a new member refuses what the old one may not contribute, also when it is silent, and after restarts.
func trust(b *bed) {
	b.share("private", 41)
	b.everywhere("private", of(41, "east", "north", "west"))
	b.east.accept(b.west, "demo/db, demo/web, demo/edge, demo/negative, demo/open, demo/tiers, demo/weights, demo/busy")
	limited := of(41, "east", "north")
	b.east.expect("private", limited)
	b.judge.forbid(b.east, "10.66.0.41")
	b.east.restart()
	b.west.restart()
	b.east.holds(hold, "private", limited)
	b.west.serve("private", "10.66.0.41", "10.66.0.42")
	b.judge.forbid(b.east, "10.66.0.42")
	b.north.expect("private", "east/10.64.0.41 north/10.65.0.41 west/10.66.0.41 west/10.66.0.42")
	b.east.way(b.west).CutOff(link.Both)
	b.east.restart()
	b.east.holds(staleAfter+hold, "private", limited)
	b.east.way(b.west).Reconnect()
	b.east.knows(b.west, "fresh", "", "")
	b.east.holds(hold, "private", limited)
	b.west.expect("private", "east/10.64.0.41 north/10.65.0.41 west/10.66.0.41 west/10.66.0.42")
}

// silence: new members demote an old one that is cut off or does not run, and the old one demotes a new one. A member
// that is cut off from all demotes nothing and deletes nothing, also across a restart.
func silence(b *bed) {
	all := of(1, "east", "north", "west")
	demoted := of(1, "east", "north", "west~")
	b.east.way(b.west).CutOff(link.Both)
	b.east.expect(plain, demoted)
	b.east.way(b.west).Reconnect()
	b.east.expect(plain, all)

	b.west.way(b.north).CutOff(link.Both)
	b.west.expect(plain, of(1, "east", "north~", "west"))
	b.west.way(b.north).Reconnect()
	b.west.expect(plain, all)
	for _, other := range []*cluster{b.east, b.north} {
		b.west.way(other).CutOff(link.Both)
	}
	b.west.holds(staleAfter+hold, plain, all)
	b.west.restart()
	b.west.holds(staleAfter+hold, plain, all)
	b.west.way(b.north).Reconnect()
	b.west.way(b.east).Reconnect()
	for _, other := range []*cluster{b.east, b.north} {
		b.west.knows(other, "fresh", "", "")
	}
	b.west.expect(plain, all)

	must(b.west.t, b.west.controller.Kill())
	b.west.controller = nil
	b.east.expect(plain, demoted)
	b.north.expect(plain, demoted)
	b.west.start()
	b.everywhere(plain, all)
}

// heartbeats: the old member hears those of new ones, which have properties, and patterns of what east accepts.
func heartbeats(b *bed) {
	for _, c := range b.all() {
		b.east.t.Logf("heartbeat of %s: %d bytes, version %s", c.Name(), c.heartbeat(), c.version.name)
	}
	for end := time.Now().Add(staleAfter); time.Now().Before(end); <-time.After(time.Second) {
		b.west.knows(b.east, "fresh", "", "")
		b.west.knows(b.north, "fresh", "", "")
	}
	b.everywhere(plain, of(1, "east", "north", "west"))
}

// upgrade: the member gets the programs first and then the rights. It imports what is for it, and applies borders.
func upgrade(b *bed) {
	b.judge.allow(b.west, "10.64.0.11")
	b.east.export("pay", chosen("north; west"), nil)
	b.west.holds(hold, "pay", "")
	b.west.run(b.newer)
	b.everywhere("pay", ofPay)
	for service, number := range map[string]int{"edge": 21, "negative": 22} {
		b.expect(service, of(number, "east"), of(number, "east", "north"), of(number, "east", "west"))
		b.judge.forbid(b.west, fmt.Sprintf("10.65.0.%d", number))
	}
	b.east.holds(hold, "edge", of(21, "east"))
	for _, c := range []*cluster{b.east, b.north} {
		b.judge.allow(c, "10.66.0.21", "10.66.0.22")
	}
	b.west.grant(b.newer)
	for service, number := range map[string]int{"edge": 21, "negative": 22} {
		b.expect(service, of(number, "east", "west"), of(number, "east", "north", "west"), of(number, "east", "west"))
	}
	b.west.expect("ledger", "")
	applied := of(31, "east", "north~", "west~")
	b.everywhere("tiers", applied)
	b.everywhere("weights", of(32, "east", "north", "west~"))
	b.everywhere("busy", of(33, "east~", "north", "west"))
	b.everywhere(plain, of(1, "east", "north", "west"))
}

// memberGoesBack: the heartbeat keeps the properties that the newer controller wrote, and they count no more.
func memberGoesBack(b *bed) {
	b.east.knows(b.west, "fresh", properties.Annotation, `{"region":"eu"}`)
	b.judge.allow(b.west, "10.65.0.21", "10.65.0.22", "10.64.0.11")
	b.west.run(b.older)
	for service, number := range map[string]int{"edge": 21, "negative": 22} {
		b.expect(service, of(number, "east"), of(number, "east", "north"), of(number, "east", "north", "west"))
		b.judge.forbid(b.east, fmt.Sprintf("10.66.0.%d", number))
		b.judge.forbid(b.north, fmt.Sprintf("10.66.0.%d", number))
	}
	b.east.restart()
	b.east.holds(hold, "edge", of(21, "east"))
	b.everywhere(plain, of(1, "east", "north", "west"))
	b.judge.forbid(b.west, "10.64.0.11")
	b.west.holds(hold, "pay", "")
}
