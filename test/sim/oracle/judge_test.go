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

// at returns a number of seconds after the beginning.
func at(second int) time.Time { return time.Unix(int64(second), 0).UTC() }

// run replays events of the service db, one per line:
//
//	0 east has 10.0.0.1,10.0.0.2~    it exports db with these ready endpoints, ~ terminating, ! neither ready nor serving
//	0 east has -                     it exports it with no endpoint
//	0 east lacks 10.0.0.1            it exports it with this endpoint, and has no Service
//	0 east hides 10.0.0.1            it does not export it
//	0 east withdraws                 it no longer exports it
//	0 east starts                    the DNS server
//	0 cut west east, 0 heal west east
//	0 east copies west 10.0.0.1      a slice of east showed that for a moment
//	0 east holds west 10.0.0.1       its slices show that now
//	0 east imports 10.96.0.1
//	0 east answers 10.0.0.1          or NXDOMAIN, NOERROR, SERVFAIL
//
// It returns the judge's findings.
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
			j.SeesCopy(rest[0], "db", addresses(rest[1]))
		case verb == "holds":
			wrong = append(wrong, j.Copies("db", map[string][]Endpoint{rest[0]: endpoints(rest[1])}, now)...)
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

// known begins a test with a service of west that east knows.
const known = `
0 west has 10.0.0.1,10.0.0.2
1 east answers 10.0.0.1,10.0.0.2
`

// TestJudge has events, and a part of the only finding; it is empty if there must be none.
func TestJudge(t *testing.T) {
	for _, c := range []struct{ name, script, wrong string }{
		{"an address that was exported", known, ""},
		{"an endpoint of before the Service", "0 west lacks 10.0.0.9\n 3 west has 10.0.0.1\n 4 east answers 10.0.0.9", "nor was it the IP"},
		{"an endpoint long after the export", known + "2 west withdraws\n 3 west hides 10.0.0.9\n 13 east answers 10.0.0.9", "nor was it the IP"},
		{"an address that never was", known + "2 east answers 10.0.0.1,10.0.0.9", "nor was it the IP"},
		{"one that was withdrawn long ago", known + "2 west has 10.0.0.1\n 13 east answers 10.0.0.1,10.0.0.2", "nor was it the IP"},
		{"one that terminates", known + "2 west has 10.0.0.1~,10.0.0.2~\n 13 east answers 10.0.0.1,10.0.0.2", ""},
		{"one that was withdrawn while the way was cut", known + "2 cut west east\n 3 west has 10.0.0.1\n 60 east answers 10.0.0.1,10.0.0.2\n 61 heal west east\n 70 east answers 10.0.0.1,10.0.0.2", ""},
		{"and long after it is whole again", known + "2 cut west east\n 3 west has 10.0.0.1\n 61 heal west east\n 72 east answers 10.0.0.1,10.0.0.2", "nor was it the IP"},
		{"a healthy service has no name", known + "2 east answers NXDOMAIN", "it is healthy"},
		{"a service behind a cut", "0 cut west east\n 0 west has 10.0.0.1\n 99 east answers NXDOMAIN", ""},
		{"known, and then cut off for long", known + "2 cut west east\n 99 east answers NXDOMAIN", "it is healthy"},
		{"another cluster has it, too", known + "2 east has 10.1.0.1\n 3 west withdraws\n 4 east answers NXDOMAIN", ""},
		{"another cluster has it, too, and is known", known + "2 east has 10.1.0.1\n 3 east answers 10.1.0.1\n 4 west withdraws\n 5 east answers NXDOMAIN", "it is healthy"},
		{"the server is not ready yet", known + "2 cut east east\n 3 east starts\n 3 heal east east\n 4 east answers SERVFAIL", ""},
		{"the IP of the import", "0 west has 10.0.0.1\n 1 east imports 10.96.0.1\n 2 east answers 10.96.0.1", ""},
		{"an IP that the import lost", "0 west has 10.0.0.1\n 1 east imports 10.96.0.1\n 2 east imports 10.96.0.2\n 13 east answers 10.96.0.1", "nor was it the IP"},
		{"an import that is left over", "0 west has 10.0.0.1\n 1 east imports 10.96.0.1\n 2 west withdraws\n 13 east answers 10.96.0.1", "nobody has exported it"},
		{"the IP proves what the copy shows", "0 west has 10.0.0.1\n 1 east imports 10.96.0.1\n 1 east copies west 10.0.0.1\n 2 east answers 10.96.0.1\n 3 east answers NXDOMAIN", "it is healthy"},
		{"a copy of what is exported", known + "2 east holds west 10.0.0.1,10.0.0.2", ""},
		{"a copy of what was withdrawn long ago", known + "2 west has 10.0.0.1\n 13 east holds west 10.0.0.1,10.0.0.2", "west has not exported 10.0.0.2"},
		{"a copy that should be there", known + "11 east holds west 10.0.0.1", "lost 10.0.0.2 of west"},
		{"a copy that was there", known + "2 east holds west 10.0.0.1,10.0.0.2\n 3 east holds west 10.0.0.1", "lost 10.0.0.2 of west"},
		{"a copy that was there before it was not ready", known + "2 east holds west 10.0.0.1,10.0.0.2\n 3 west has 10.0.0.1,10.0.0.2!\n 4 west has 10.0.0.1,10.0.0.2\n 5 east holds west 10.0.0.1", ""},
		{"a copy that was there, but never ready at its source", "0 west has 10.0.0.1,10.0.0.2!\n 1 east holds west 10.0.0.1,10.0.0.2!\n 2 west withdraws\n 3 west has 10.0.0.1,10.0.0.2\n 3 east holds west 10.0.0.1", ""},
		{"nothing is ready for long", known + "12 east holds west 10.0.0.1!,10.0.0.2!\n24 east holds west 10.0.0.1!,10.0.0.2!", "nothing is ready here since"},
		{"nothing is ready for long, with a break", known + "12 east holds west 10.0.0.1!,10.0.0.2!\n 15 east holds west 10.0.0.1,10.0.0.2!\n24 east holds west 10.0.0.1!,10.0.0.2!", ""},
		{"nothing is ready for long, and nothing can be written", known + "12 cut east east\n 12 east holds west 10.0.0.1!,10.0.0.2!\n24 east holds west 10.0.0.1!,10.0.0.2!", ""},
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
