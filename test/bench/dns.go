// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/test/bench/fleet"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

const queriesText = `
Whole servers over UDP on loopback, under as much load as dnsperf generates, with one core for each:
70 % ClusterSetIP A, 10 % AAAA NODATA, 10 % NXDOMAIN, 5 % headless A of 10 endpoints, 5 % SRV. The floor
is a CoreDNS server that looks up prebuilt records and writes them, the limit for any plugin. The
figures are those of the round with the median ratio.`

// The cores of the server, and of its client.
const (
	serverCore = 1
	clientCore = 0
)

// queries measures entire servers under a mixed load, with the imports of a controller.
func (b *bed) queries(ctx context.Context) error {
	local := b.local()
	b.figures = nil // drop the figures of the import
	if err := errors.Join(kill(&local.controller), kill(&local.dns), os.Setenv("GOMAXPROCS", "1"), os.Unsetenv("GODEBUG")); err != nil {
		return err // each server has one core and prints no traces
	}
	if err := b.serve(local); err != nil {
		return err
	}
	if err := ready(ctx, local.dns); err != nil { // the floor plugin queries it
		return err
	}
	file := filepath.Join(local.Directory(), "queries")
	if err := os.WriteFile(file, []byte(mixed(b.shape.Services)), 0o600); err != nil {
		return err
	}
	floor, err := b.startDNS(local, "floor "+local.dns.Address+" "+file)
	if err := errors.Join(err, os.Unsetenv("GOMAXPROCS")); err != nil {
		return err
	}
	defer func() { _ = floor.Kill() }()
	if err := ready(ctx, floor); err != nil {
		return err
	}
	servers := []*clusterset.Program{local.dns, floor}
	var rounds [][2]float64 // by round and server
	for round := range b.rounds + 1 {
		b.say("round %d of %d", round, b.rounds)
		var cost [2]float64
		for turn := range servers {
			which := (turn + round) % len(servers)
			if cost[which], err = b.load(ctx, servers[which], file); err != nil {
				return err
			}
		}
		if round > 0 { // round 0 is the warm-up
			rounds = append(rounds, cost)
		}
	}
	slices.SortFunc(rounds, func(a, b [2]float64) int { return cmp.Compare(a[0]/a[1], b[0]/b[1]) })
	median := rounds[len(rounds)/2]
	b.add(&figure{what: "DNS, CPU per query", value: median[0]}).compare(median[1], ratio(1.03))
	return nil
}

// ready waits until a server answers, and pins it to its core.
func ready(ctx context.Context, server *clusterset.Program) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := ask(ctx, server.Address, fleet.Name(0), every(5*time.Millisecond),
		func(addresses []netip.Addr) bool { return len(addresses) > 0 }, server.Err); err != nil {
		return err
	}
	_, err := process.Output(exec.CommandContext(ctx, "taskset", "--all-tasks", "--cpu-list", "--pid", strconv.Itoa(serverCore),
		strconv.Itoa(server.PID()))) // taskset is in util-linux
	return err
}

var completedPattern = regexp.MustCompile(`(?m)^\s*Queries completed:\s+(\d+)`)

// load makes dnsperf send the queries in a file to a server. It returns the server's processor time per query in nanoseconds.
func (b *bed) load(ctx context.Context, server *clusterset.Program, file string) (float64, error) {
	host, port, err := net.SplitHostPort(server.Address)
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, "taskset", "-c", strconv.Itoa(clientCore), // taskset is in util-linux
		"dnsperf", "-s", host, "-p", port, "-d", file, "-l", strconv.Itoa(int(b.joined.load.Seconds())),
		"-c", "8", "-T", "1", "-q", "200", "-e", "-W")
	output := ""
	_, used, err := during(server.PID(), func() (err error) {
		output, err = process.Output(cmd)
		return err
	})
	if err != nil {
		return 0, err
	}
	match := completedPattern.FindStringSubmatch(output)
	if match == nil {
		return 0, fmt.Errorf("dnsperf printed no statistics:\n%s", output)
	}
	completed, err := strconv.Atoi(match[1])
	if err == nil && completed == 0 {
		err = fmt.Errorf("the server at %s answered no query", server.Address)
	}
	return float64(used) / float64(completed), err
}

// mixed returns queries for dnsperf, always in the same order.
func mixed(services int) string {
	random := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for i := range 10_000 {
		headless := random.IntN(services/2) * 2
		name, ten, qtype := fleet.Name(random.IntN(services/2)*2+1), fleet.Name(headless%100), "A"
		switch draw := random.IntN(100); {
		case draw < 70:
		case draw < 80:
			qtype = "AAAA"
		case draw < 90:
			name = fmt.Sprintf("none-%d.%s", i, name)
		case draw < 95:
			name = ten
		case i%2 == 0:
			name, qtype = "_sql._tcp."+ten, "SRV"
		default:
			name, qtype = "_sql._tcp."+name, "SRV"
		}
		fmt.Fprintf(&b, "%s %s\n", name, qtype)
	}
	return b.String()
}

// ask queries the A records of a name over one UDP socket, an interval apart, until the addresses are as wanted. It
// returns an error when the context ends, or when broken returns one.
func ask(ctx context.Context, server, name string, interval func() time.Duration,
	wanted func([]netip.Addr) bool, broken func() error,
) error {
	connection, err := new(net.Dialer).DialContext(ctx, "udp", server)
	if err != nil {
		return fmt.Errorf("reach the server at %s: %w", server, err)
	}
	defer connection.Close()
	for {
		timer := time.NewTimer(interval())
		query := new(dns.Msg).SetQuestion(name, dns.TypeA)
		query.SetEdns0(1232, false) // as in resolvers since the DNS flag day 2020
		reply, _, last := (&dns.Client{Timeout: time.Second}).ExchangeWithConn(query, &dns.Conn{Conn: connection, UDPSize: 4096})
		if last == nil && wanted(addresses(reply)) {
			return nil
		}
		if err := broken(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the answer for %s: %w", name, errors.Join(ctx.Err(), last))
		case <-timer.C:
		}
	}
}

// every returns a constant interval.
func every(interval time.Duration) func() time.Duration {
	return func() time.Duration { return interval }
}

// addresses returns the addresses of the A records in a reply.
func addresses(reply *dns.Msg) (all []netip.Addr) {
	for _, rr := range reply.Answer {
		if a, ok := rr.(*dns.A); ok {
			if ip, ok := netip.AddrFromSlice(a.A.To4()); ok {
				all = append(all, ip)
			}
		}
	}
	return all
}
