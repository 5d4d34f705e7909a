// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/miekg/dns"
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

// A lookup is a question to one cluster's DNS server and the answer it must give.
type lookup struct {
	server string
	name   string
	rrtype string
	want   answer
}

// await asks until the answer is the wanted one, prints it as dig does, and
// returns how long after since that was. The last other answer is part of the error.
func (n narrator) await(ctx context.Context, l lookup, since time.Time) (time.Duration, error) {
	elapsed, records, err := awaitAnswer(ctx, l, since)
	if err != nil {
		return 0, err
	}
	n.print(l, records)
	return elapsed, nil
}

// awaitAnswer asks until the answer is the wanted one.
func awaitAnswer(ctx context.Context, l lookup, since time.Time) (time.Duration, []dns.RR, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var last string
	for {
		got, records, err := dig(ctx, l.server, l.name, l.rrtype)
		switch {
		case err == nil && got.equal(l.want):
			return time.Since(since), records, nil
		case err != nil:
			last = err.Error()
		default:
			last = got.String()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, nil, fmt.Errorf("%s %s at %s: want %s\n  the last answer was %s", l.name, l.rrtype, l.server,
				l.want, last)
		}
	}
}

func (n narrator) print(l lookup, records []dns.RR) {
	host, port, _ := strings.Cut(l.server, ":")
	rrtype := ""
	if l.rrtype != "A" {
		rrtype = " " + l.rrtype
	}
	n.command(fmt.Sprintf("dig @%s -p %s %s%s", host, port, strings.TrimSuffix(l.name, "."), rrtype))
	if len(records) == 0 {
		n.output(l.want.rcode)
	}
	for _, record := range records {
		n.output(record.String())
	}
}
