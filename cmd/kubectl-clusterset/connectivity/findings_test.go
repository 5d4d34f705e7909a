// SPDX-License-Identifier: Apache-2.0

package connectivity

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/cmd/clusterset-controller/probe"
)

// pods are two in each of two clusters; those of west have two families.
var pods = []Pod{
	{"east", "e", "clusterset-probe-0", "east-a", []string{"10.64.0.1", "fd00::1"}, []string{"169.254.20.10"}},
	{"east", "e", "clusterset-probe-1", "east-b", []string{"10.64.1.1", "fd00::2"}, []string{"169.254.20.10"}},
	{"west", "w", "clusterset-probe-0", "west-a", []string{"10.65.0.1"}, []string{"10.96.0.10"}},
	{"west", "w", "clusterset-probe-1", "west-b", []string{"10.65.1.1"}, []string{"10.96.0.10"}},
}

var ofTest = names{service: Name, withIP: nameWithIP, namespace: "system", zone: "clusterset.local"}

// A world says what becomes of an exchange, and of a lookup. Nil is success.
type world struct {
	exchange func(from Pod, q question, e *probe.Exchange)
	lookup   func(from Pod, host string, r *probe.Result)
}

const virtual = "10.99.0.1"

// answer is what a pod answers to a question in a network that works.
func (w world) answer(from Pod, q question) (result probe.Result) {
	owner := map[string]Pod{virtual: pods[3]}
	for _, pod := range pods {
		for _, address := range pod.Addresses {
			owner[address] = pod
		}
		if q.target.Host == ofTest.ofSet() || q.target.Host == ofTest.ofPod(pod) || slices.Contains(pod.Addresses,
			q.target.Host) {
			for _, address := range pod.Addresses {
				if q.byName() || address == q.target.Host {
					result.Addresses = append(result.Addresses, address)
				}
			}
		}
	}
	if q.target.Host == ofTest.ofIP() {
		result.Addresses = []string{virtual}
	}
	if w.lookup != nil && q.byName() {
		w.lookup(from, q.target.Host, &result)
	}
	for _, address := range result.Addresses {
		for range q.target.Count {
			e := probe.Exchange{
				Address: address, Bytes: 512, By: owner[address].identity(), From: from.Addresses[0],
				To: from.Addresses[0],
			}
			if q.target.Large {
				e.Bytes = 1472
			}
			if !slices.ContainsFunc(from.Addresses, func(own string) bool { return sameFamily(own, address) }) {
				e.Failure, e.Error = probe.Unreachable, "no IPv6 here"
			} else if w.exchange != nil {
				w.exchange(from, q, &e)
			}
			result.Exchanges = append(result.Exchanges, e)
		}
	}
	return result
}

func (w world) report(without skips) *Report {
	r := &Report{Pods: pods}
	for _, from := range pods {
		for _, q := range questions(from, pods, ofTest, without) {
			r.Probes = append(r.Probes, judge(from, q, w.answer(from, q), pods)...)
		}
		r.Probes = append(r.Probes, skipped(from, pods, ofTest, without)...)
	}
	slices.SortFunc(r.Probes, compare)
	r.Findings = diagnosis{probes: r.Probes, pods: pods, names: ofTest, skips: without}.findings()
	return r
}

// fails has exchanges of some paths fail from one cluster to addresses that begin
// with a text.
func fails(from, to string, failure probe.Failure, paths ...string) func(Pod, question, *probe.Exchange) {
	return func(pod Pod, q question, e *probe.Exchange) {
		if strings.HasPrefix(pod.Context+" "+pod.Node, from) && strings.HasPrefix(e.Address, to) &&
			(len(paths) == 0 || slices.Contains(paths, q.path)) {
			e.Failure, e.Error, e.By, e.To = failure, "error "+string(failure), "", ""
		}
	}
}

func resolves(from string, failure probe.Failure, hosts ...string) func(Pod, string, *probe.Result) {
	return func(pod Pod, host string, r *probe.Result) {
		if strings.HasPrefix(pod.Context+" "+pod.Node, from) && (len(hosts) == 0 || slices.Contains(hosts, host)) {
			*r = probe.Result{Failure: failure, Error: "error " + string(failure)}
		}
	}
}

// TestFindings has each fault of the network, and what is said of it.
func TestFindings(t *testing.T) {
	for _, test := range []struct {
		name  string
		world world
		skips skips
		// rows are those of the table from east, and from west.
		rows []string
		// findings are "from>to result: parts of what | parts of the fix".
		findings []string
	}{
		{name: "all works"},
		{
			name: "no answer in one direction", world: world{exchange: fails("east", "10.65", probe.Timeout)},
			rows: []string{"east west failed failed failed failed failed failed"},
			findings: []string{"east>west failed: get no answer (such as node east-a to 10.65.0.1 on node west-a). | The " +
				"other direction works, so routes exist. Allow packets from pod addresses of east"},
		},
		{
			name: "no answer in both directions", world: world{exchange: func(from Pod, q question, e *probe.Exchange) {
				fails("", "10.6", probe.Timeout)(from, q, e)
			}},
			rows: []string{"east west failed failed failed failed failed failed", "west east failed failed failed failed " +
				"failed failed"},
			findings: []string{
				"east>west failed: get no answer | Route the pod ranges of west in the network of east",
				"west>east failed: get no answer | Route the pod ranges of east in the network of west",
			},
		},
		{
			name: "one node does not reach another", world: world{exchange: fails("east east-b", "10.65.0", probe.Timeout)},
			rows: []string{"east west 1 of 4 failed 1 of 4 failed 1 of 4 failed 1 of 4 failed 1 of 4 failed 1 of " +
				"4 failed"},
			findings: []string{"east>west failed: get no answer, on 1 of 4 paths: node east-b to 10.65.0.1 on node " +
				"west-a. | The other direction works"},
		},
		{
			name: "no route", world: world{exchange: fails("west", "10.64", probe.Unreachable)},
			findings: []string{"west>east failed: No route leads from pods of west to pods of east: error unreachable | " +
				"Route the pod ranges of east in the network of west."},
		},
		{
			name: "no route, of which a router tells once",
			world: world{exchange: func(from Pod, q question, e *probe.Exchange) {
				fails("west", "10.64", probe.Timeout)(from, q, e)
				fails("west", "10.64", probe.Unreachable, PathUDPLarge)(from, q, e)
			}},
			findings: []string{"west>east failed: No route leads from pods of west to pods of east: error unreachable | Route"},
		},
		{
			name: "rejected", world: world{exchange: fails("west", "10.64", probe.Refused)},
			findings: []string{"west>east failed: are rejected: error refused | firewall"},
		},
		{
			name: "no TCP", world: world{exchange: fails("east", "10.65", probe.Timeout, PathTCP, PathTCPLarge,
				PathSetName, PathClusterName)},
			rows:     []string{"east west failed failed ok ok failed failed"},
			findings: []string{"east>west failed: over UDP, but not over TCP | Allow TCP"},
		},
		{
			name: "no UDP", world: world{exchange: fails("east", "10.65", probe.Timeout, PathUDP, PathUDPLarge)},
			rows:     []string{"east west ok ok failed failed ok ok"},
			findings: []string{"east>west failed: over TCP, but not over UDP | Allow UDP"},
		},
		{
			name: "a black hole for large packets", world: world{exchange: fails("east", "10.65", probe.Timeout,
				PathUDPLarge, PathTCPLarge)},
			rows: []string{"east west ok failed ok failed ok ok"},
			findings: []string{"east>west failed: packets of the interface's size (1472 bytes of UDP payload) do not | " +
				"Lower the MTU"},
		},
		{
			name: "no UDP, and a black hole", world: world{exchange: fails("east", "10.65", probe.Timeout, PathUDP,
				PathUDPLarge, PathTCPLarge)},
			findings: []string{"east>west failed: but not over UDP | Allow UDP", "east>west failed: packets of the " +
				"interface's size | Lower the MTU"},
		},
		{
			name: "the same pod range in both", world: world{exchange: func(from Pod, q question, e *probe.Exchange) {
				if from.Context == "east" && e.Address == "10.65.0.1" {
					e.By = "e/clusterset-probe-1"
				}
			}},
			findings: []string{"east>west failed: The address 10.65.0.1 of a pod of west is routed to e/clusterset-probe-1, " +
				"on 2 of 4 paths | do not overlap"},
		},
		{
			name: "something else answers", world: world{exchange: fails("east", "10.65.0.1", probe.Foreign)},
			findings: []string{"east>west failed: is routed to another program, on 2 of 4 | do not overlap"},
		},
		{
			name: "translated addresses", world: world{exchange: func(from Pod, _ question, e *probe.Exchange) {
				if from.Context == "east" {
					e.To = "192.0.2.1"
				}
			}},
			findings: []string{"east>west warning: Pods of west see pods of east at other addresses: 192.0.2.1. | " +
				"Exclude the pod ranges of west from masquerading in east"},
		},
		{
			name: "a DNS without the zone", world: world{lookup: resolves("east", probe.NotFound)},
			rows: []string{"east west ok ok ok ok failed failed", "east (clusterset IP) failed - failed - - -"},
			findings: []string{"east> failed: Pods of east cannot resolve clusterset-probe.system.svc.clusterset.local: " +
				"their nameserver 169.254.20.10 answers that it does not exist | NodeLocal DNSCache"},
		},
		{
			name: "a cache of one node without the zone", world: world{lookup: resolves("east east-b", probe.NotFound)},
			findings: []string{"east> failed: on node east-b: their nameserver 169.254.20.10 answers | kubectl " +
				"clusterset check --contexts east"},
		},
		{
			name: "a DNS that does not answer", world: world{lookup: resolves("west", probe.Timeout)},
			findings: []string{"west> failed: their nameserver 10.96.0.10 does not answer (error timeout) | port 53"},
		},
		{
			name: "a name without a pod", world: world{lookup: func(_ Pod, _ string, r *probe.Result) {
				r.Addresses = slices.DeleteFunc(r.Addresses, func(a string) bool { return a == "10.65.0.1" })
			}},
			rows: []string{"east west ok ok ok ok 2 of 4 failed 2 of 4 failed"},
			findings: []string{
				"east>west failed: clusterset-probe.system.svc.clusterset.local resolves to no address of pod " +
					"clusterset-probe-0 of west. | kubectl clusterset explain system/clusterset-probe --contexts east,west",
				"east>west failed: clusterset-probe-0.w.clusterset-probe.system.svc.clusterset.local resolves to no address " +
					"| kubectl",
			},
		},
		{
			name: "connections to the IP", world: world{exchange: func(from Pod, q question, e *probe.Exchange) {
				if q.target.Network == probe.TCP {
					fails("east east-a", virtual, probe.Timeout)(from, q, e)
				}
			}},
			rows: []string{"east (clusterset IP) 1 of 2 failed - ok - - -"},
			findings: []string{"east> failed: not through the IP 10.99.0.1 of an import over TCP: node east-a, 8 of 8 " +
				"failed: error timeout. | kube-proxy"},
		},
		{
			name: "an import without an IP", world: world{lookup: resolves("west", probe.NotFound, ofTest.ofIP())},
			findings: []string{"west> failed: clusterset-probe-ip.system.svc.clusterset.local does not resolve: error " +
				"not-found. | explain system/clusterset-probe-ip --contexts west"},
		},
		{
			name: "not joined", skips: skips{{"east", "west"}: {"no member.", "kubectl clusterset join east west"}},
			rows:     []string{"east west ok ok ok ok skipped skipped"},
			findings: []string{"east>west skipped: Names are not tested: no member. | kubectl clusterset join east west"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			report := test.world.report(test.skips)
			var out bytes.Buffer
			if err := report.Text(&out, false); err != nil {
				t.Fatal(err)
			}
			table := strings.Join(strings.Fields(out.String()), " ")
			for _, row := range test.rows {
				if !strings.Contains(table, row) {
					t.Errorf("no row %q in\n%s", row, out.String())
				}
			}
			if len(test.findings) == 0 && report.Count(OK) != len(report.Probes) {
				t.Errorf("not all is ok:\n%s", out.String())
			}
			if len(report.Findings) != len(test.findings) {
				t.Fatalf("got %d findings, want %d:\n%s", len(report.Findings), len(test.findings), out.String())
			}
			for i, want := range test.findings {
				head, rest, _ := strings.Cut(want, ": ")
				what, fix, _ := strings.Cut(rest, " | ")
				got := report.Findings[i]
				if got.From+">"+got.To+" "+got.Result != head || !strings.Contains(got.What,
					what) || !strings.Contains(got.Fix, fix) {
					t.Errorf("got %+v\nwant %s", got, want)
				}
			}
		})
	}
}

// TestQuestionsSkipFamiliesThatAPodLacks: east has IPv6, and west has not.
func TestQuestionsSkipFamiliesThatAPodLacks(t *testing.T) {
	for _, q := range questions(pods[2], pods, ofTest, nil) {
		if strings.Contains(q.target.Host, ":") {
			t.Errorf("a pod without IPv6 is asked for %s", q.target.Host)
		}
	}
	if report := (world{}).report(nil); report.Count(OK) != len(report.Probes) || len(report.Probes) != 4*(2*4+2*2+2) {
		t.Errorf("%d of %d are ok", report.Count(OK), len(report.Probes))
	}
}

// TestRequestsAreAllowed holds the questions against the limits of the probe.
func TestRequestsAreAllowed(t *testing.T) {
	var targets []probe.Target
	for _, q := range questions(pods[0], pods, ofTest, nil) {
		targets = append(targets, q.target)
	}
	if err := (probe.Request{Targets: targets}).Validate(); err != nil || atOnce > probe.MaxTargets {
		t.Error(err)
	}
}
