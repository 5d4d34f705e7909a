// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	dns "github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

// patience bounds the wait for an answer. Answers take milliseconds; the bound only ends a demo that is wrong.
const patience = 2 * time.Minute

// A narrator prints the story: headings, the commands that one would type, and what came back.
type narrator struct {
	out io.Writer
}

func (n narrator) chapter(format string, args ...any) {
	fmt.Fprintf(n.out, "\n== %s\n", fmt.Sprintf(format, args...))
}

func (n narrator) say(format string, args ...any) {
	fmt.Fprintf(n.out, "   %s\n", fmt.Sprintf(format, args...))
}

func (n narrator) command(line string) {
	fmt.Fprintf(n.out, "$ %s\n", line)
}

func (n narrator) output(text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintf(n.out, "  %s", line)
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		fmt.Fprintln(n.out)
	}
}

// A lookup is a question to one cluster's DNS server and the answer it must give: the data of the records, sorted, or the
// name of a negative answer.
type lookup struct {
	server, name, rrtype, want string
}

// await asks until the answer is the wanted one, prints it as dig does, and
// returns how long after since that was. The last other answer is part of the error.
func (n narrator) await(ctx context.Context, l lookup, since time.Time) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		answer, err := dns.DNSAt(l.server).Ask(ctx, l.name, l.rrtype)
		if err == nil && answer.Text() == l.want {
			elapsed := time.Since(since)
			host, port, _ := strings.Cut(l.server, ":")
			n.command(fmt.Sprintf("dig +short @%s -p %s %s %s", host, port, strings.TrimSuffix(l.name, "."), l.rrtype))
			n.output(strings.Join(answer.Records, "\n"))
			if len(answer.Records) == 0 {
				n.output(l.want)
			}
			return elapsed, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, fmt.Errorf("%s %s at %s: want %s\n  the last answer was %s, %w", l.name, l.rrtype, l.server, l.want,
				answer.Text(), err)
		}
	}
}

// data is that of records, as in the answer of a lookup.
func data(records ...string) string { return strings.Join(slices.Sorted(slices.Values(records)), " ") }
