// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

const bound = 10 * time.Second

// at is that many seconds after the beginning.
func at(second int) time.Time { return time.Unix(int64(second), 0).UTC() }

// run plays what happened to the service db, a line for each event:
//
//	0 east has 10.0.0.1,10.0.0.2~    it exports db with these ready endpoints, ~ terminating, ! neither ready nor serving
//	0 east has -                     it exports it with no endpoint
//	0 east lacks 10.0.0.1            it exports it with this endpoint, and has no Service
//	0 east hides 10.0.0.1            it does not export it
//	0 east withdraws                 it no longer exports it
//	0 east starts                    the DNS server
//	0 cut west east, 0 heal west east
//	0 east copies west 10.0.0.1      objects of east show that
//	0 east imports 10.96.0.1
//	0 east answers 10.0.0.1          or NXDOMAIN, NOERROR, SERVFAIL
//
// It returns what is wrong.
func run(t *testing.T, script string) (wrong []string) {
	t.Helper()
	j := NewJudge(at(0), bound, "east", "east", "west")
	for line := range strings.Lines(script) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		second, err := strconv.Atoi(fields[0])
		if err != nil {
			t.Fatal(err)
		}
		now, subject, verb, rest := at(second), fields[1], fields[2], fields[3:]
		switch {
		case subject == "cut":
			j.Block(verb)
		case subject == "heal":
			j.Clear(now, verb)
		case verb == "has":
			j.Change(subject, Service{Name: "db", Exported: true, Present: true, Endpoints: endpoints(rest[0])}, now)
		case verb == "lacks":
			j.Change(subject, Service{Name: "db", Exported: true, Endpoints: endpoints(rest[0])}, now)
		case verb == "hides":
			j.Change(subject, Service{Name: "db", Present: true, Endpoints: endpoints(rest[0])}, now)
		case verb == "withdraws":
			j.Change(subject, Service{Name: "db"}, now)
		case verb == "starts":
			j.Starts()
		case verb == "copies":
			j.SeesCopy(rest[0], "db", addresses(rest[1]), now)
		case verb == "imports":
			j.SeesIPs("db", addresses(strings.Join(rest, "")), now)
		case verb == "answers":
			reply := Reply{Name: "db", At: now}
			if code, isCode := dns.StringToRcode[rest[0]]; isCode {
				reply.Code = code
			} else { // NOERROR
				reply.Addresses = addresses(rest[0])
			}
			wrong = append(wrong, j.Reply(reply)...)
		default:
			t.Fatalf("%q is no event", line)
		}
	}
	return wrong
}

func endpoints(text string) []Endpoint {
	var all []Endpoint
	if text == "-" {
		return nil
	}
	for each := range strings.SplitSeq(text, ",") {
		address := strings.TrimRight(each, "~!")
		mark := strings.TrimPrefix(each, address)
		all = append(all, Endpoint{
			Address: netip.MustParseAddr(address), Ready: mark == "", Serving: mark != "!", Terminating: mark == "~",
		})
	}
	return all
}

func addresses(text string) []netip.Addr {
	var all []netip.Addr
	for _, each := range endpoints(strings.TrimSuffix(text+",-", ",-")) {
		all = append(all, each.Address)
	}
	return all
}

// known begins a test in which east knows the service of west.
const known = `
0 west has 10.0.0.1,10.0.0.2
1 east answers 10.0.0.1,10.0.0.2
`

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name, script string
		wrong        string // part of the only fault, empty where there is none
	}{
		{name: "an address that was exported", script: known},
		{name: "an endpoint without a Service", script: "0 west lacks 10.0.0.9\n 3 east answers 10.0.0.9", wrong: "10.0.0.9 was never exported for it, nor the IP"},
		{name: "an endpoint of before the Service", script: "0 west lacks 10.0.0.9\n 3 west has 10.0.0.1\n 4 east answers 10.0.0.9", wrong: "10.0.0.9 was never exported for it, nor the IP"},
		{name: "an endpoint right after the Service", script: known + "2 west lacks 10.0.0.9\n 12 east answers 10.0.0.9"},
		{name: "an endpoint long after the Service", script: known + "2 west lacks 10.0.0.9\n 13 east answers 10.0.0.9", wrong: "west withdrew 10.0.0.9"},
		{name: "an endpoint right after the export", script: known + "2 west withdraws\n 3 west hides 10.0.0.9\n 12 east answers 10.0.0.9"},
		{name: "an endpoint long after the export", script: known + "2 west withdraws\n 3 west hides 10.0.0.9\n 13 east answers 10.0.0.9", wrong: "west withdrew 10.0.0.9"},
		{name: "one of before the export, after the way was cut", script: "0 cut west east\n 1 west hides 10.0.0.8,10.0.0.9\n 2 west has 10.0.0.8\n 4 heal west east\n 5 east answers 10.0.0.9\n 15 east answers 10.0.0.9", wrong: "west withdrew 10.0.0.9"},
		{name: "one of a service that is not exported", script: "0 cut west east\n 1 west hides 10.0.0.9\n 2 east answers 10.0.0.9", wrong: "10.0.0.9 was never exported"},
		{name: "an address that never was", script: known + "2 east answers 10.0.0.1,10.0.0.9", wrong: "10.0.0.9 was never exported for it, nor the IP"},
		{name: "one that was withdrawn just now", script: known + "2 west has 10.0.0.1\n 12 east answers 10.0.0.1,10.0.0.2"},
		{name: "one that was withdrawn long ago", script: known + "2 west has 10.0.0.1\n 13 east answers 10.0.0.1,10.0.0.2", wrong: "west withdrew 10.0.0.2"},
		{name: "one that is not ready any more", script: known + "2 west has 10.0.0.1,10.0.0.2!\n 13 east answers 10.0.0.2", wrong: "west withdrew 10.0.0.2"},
		{name: "one that terminates", script: known + "2 west has 10.0.0.1~,10.0.0.2~\n 13 east answers 10.0.0.1,10.0.0.2"},
		{
			name:   "one that was withdrawn while the way was cut",
			script: known + "2 cut west east\n 3 west has 10.0.0.1\n 60 east answers 10.0.0.1,10.0.0.2\n 61 heal west east\n 70 east answers 10.0.0.1,10.0.0.2",
		},
		{
			name: "and long after it is whole again",
			script: known +
				"2 cut west east\n 3 west has 10.0.0.1\n 61 heal west east\n 72 east answers 10.0.0.1,10.0.0.2",
			wrong: "west withdrew 10.0.0.2",
		},
		{
			name:   "cut twice and healed once",
			script: known + "2 cut west east\n 2 cut west east\n 3 west has 10.0.0.1\n 4 heal west east\n 20 east answers 10.0.0.1,10.0.0.2",
		},
		{name: "an export that nobody has", script: known + "2 west withdraws\n 13 east answers 10.0.0.1", wrong: "west withdrew 10.0.0.1"},

		{name: "a healthy service has no name", script: known + "2 east answers NXDOMAIN", wrong: "it is healthy"},
		{name: "a healthy service has no address", script: known + "2 east answers NOERROR", wrong: "it is healthy"},
		{name: "a healthy service fails", script: known + "2 east answers SERVFAIL", wrong: "it is healthy"},
		{name: "a service that did not arrive yet", script: "0 west has 10.0.0.1\n 9 east answers NXDOMAIN"},
		{name: "a service that should have arrived", script: "0 west has 10.0.0.1\n 11 east answers NXDOMAIN", wrong: "it is healthy: nothing stood in its way"},
		{name: "a service behind a cut", script: "0 cut west east\n 0 west has 10.0.0.1\n 99 east answers NXDOMAIN"},
		{name: "a service that was not healthy for a moment", script: known + "2 west has 10.0.0.1!\n 3 west has 10.0.0.1\n 4 east answers NXDOMAIN"},
		{
			name: "an address of an earlier time proves nothing of the present",
			script: known +
				"2 west has 10.0.0.1!\n 3 west has 10.0.0.1\n 4 east answers 10.0.0.1\n 5 east answers NXDOMAIN",
		},
		{
			name: "a new address does",
			script: known +
				"2 west has 10.0.0.1!\n 3 west has 10.0.0.3\n 4 east answers 10.0.0.3\n 5 east answers NXDOMAIN",
			wrong: "it is healthy: answers showed it",
		},
		{name: "known, and then cut off for long", script: known + "2 cut west east\n 99 east answers NXDOMAIN", wrong: "it is healthy"},
		{name: "another cluster has it, too", script: known + "2 east has 10.1.0.1\n 3 west withdraws\n 4 east answers NXDOMAIN"},
		{
			name: "another cluster has it, too, and is known",
			script: known +
				"2 east has 10.1.0.1\n 3 east answers 10.1.0.1\n 4 west withdraws\n 5 east answers NXDOMAIN",
			wrong: "it is healthy",
		},

		{name: "the server is not ready yet", script: known + "2 cut east east\n 3 east starts\n 3 heal east east\n 4 east answers SERVFAIL"},
		{name: "the server should be ready", script: known + "3 east starts\n 14 east answers SERVFAIL", wrong: "it is healthy"},
		{
			name:   "the server was ready before",
			script: known + "2 cut east east\n 3 east starts\n 3 heal east east\n 4 east answers 10.0.0.1\n 5 east answers SERVFAIL", wrong: "it is healthy",
		},
		{
			name: "a server that begins answers what it does not know yet",
			script: known +
				"2 cut east east\n 3 heal east east\n 4 east answers NXDOMAIN",
			wrong: "it is healthy",
		},

		{name: "the IP of the import", script: "0 west has 10.0.0.1\n 1 east imports 10.96.0.1\n 2 east answers 10.96.0.1"},
		{name: "another IP", script: "0 west has 10.0.0.1\n 1 east imports 10.96.0.1\n 2 east answers 10.96.0.2", wrong: "10.96.0.2 was never exported for it, nor the IP"},
		{
			name:   "an IP that the import lost",
			script: "0 west has 10.0.0.1\n 1 east imports 10.96.0.1\n 2 east imports 10.96.0.2\n 13 east answers 10.96.0.1", wrong: "lost the IP 10.96.0.1",
		},
		{
			name:   "an import that is left over",
			script: "0 west has 10.0.0.1\n 1 east imports 10.96.0.1\n 2 west withdraws\n 13 east answers 10.96.0.1",
			wrong:  "nobody has exported it",
		},
		{
			name:   "the IP proves what the copy shows",
			script: "0 west has 10.0.0.1\n 1 east imports 10.96.0.1\n 1 east copies west 10.0.0.1\n 2 east answers 10.96.0.1\n 3 east answers NXDOMAIN", wrong: "it is healthy: answers showed it",
		},
		{
			name:   "and nothing without a copy",
			script: "0 west has 10.0.0.1\n 1 east imports 10.96.0.1\n 2 east answers 10.96.0.1\n 3 east answers NXDOMAIN",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			wrong := run(t, c.script)
			switch {
			case c.wrong == "" && len(wrong) > 0:
				t.Errorf("it is right, and said to be wrong: %q", wrong)
			case c.wrong != "" && (len(wrong) != 1 || !strings.Contains(wrong[0], c.wrong)):
				t.Errorf("got %q, want one with %q", wrong, c.wrong)
			}
		})
	}
}

func TestAnAddressOfAnotherService(t *testing.T) {
	j := NewJudge(at(0), bound, "east", "east", "west")
	j.Change("west", Service{Name: "web", Exported: true, Present: true, Endpoints: endpoints("10.0.0.7")}, at(0))
	wrong := j.Reply(Reply{Name: "db", At: at(1), Addresses: addresses("10.0.0.7")})
	if len(wrong) != 1 || !strings.Contains(wrong[0], "10.0.0.7 was never exported for it, but for web by west") {
		t.Errorf("got %q", wrong)
	}
}

// TestDarkness: endpoints that are ready at their source are not ready for long in
// a cluster, which counts while its API server works.
func TestDarkness(t *testing.T) {
	address := endpoints("10.0.0.1")
	for name, test := range map[string]struct {
		cut  bool
		want int
	}{"the API server works": {false, 1}, "it is frozen": {true, 0}} {
		j := NewJudge(at(0), bound, "east", "east", "west")
		j.Change("west", Service{Name: "web", Exported: true, Present: true, Endpoints: address}, at(0))
		if test.cut {
			j.Block("east")
		}
		held := map[string][]Endpoint{"west": {{Address: address[0].Address}}}
		wrong := j.Copies("web", held, at(20))
		if wrong = append(wrong, j.Copies("web", held, at(21).Add(bound))...); len(wrong) != test.want {
			t.Errorf("%s: got %q", name, wrong)
		}
	}
}
