// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"html"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	dns "github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

// patience limits the wait for an answer. Answers take milliseconds, so only a broken demo waits that long.
const patience = 2 * time.Minute

// A narrator prints the story: headings, the commands that a user would type, and their output.
type narrator struct {
	out   io.Writer
	began time.Time
	shown []line
}

// A line of the recording appears at this time after the beginning.
type line struct {
	at          time.Duration
	class, text string
}

// show prints a line, and adds it to the recording.
func (n *narrator) show(class, text string) {
	fmt.Fprintln(n.out, text)
	n.shown = append(n.shown, line{time.Since(n.began), class, text})
}

func (n *narrator) chapter(format string, args ...any) {
	fmt.Fprintln(n.out)
	n.show("h", "== "+fmt.Sprintf(format, args...))
}

func (n *narrator) say(format string, args ...any) { n.show("", "   "+fmt.Sprintf(format, args...)) }

func (n *narrator) command(format string, args ...any) {
	n.show("c", "$ "+fmt.Sprintf(format, args...))
}

// output prints the output of kubectl, which is not in the recording.
func (n *narrator) output(text string) {
	for each := range strings.Lines(strings.TrimSuffix(text, "\n") + "\n") {
		fmt.Fprint(n.out, "  ", each)
	}
}

// await queries the DNS server of a cluster until the answer is as wanted: the sorted data of the records, or the name
// of a negative answer. It prints the answer as dig does, and returns the time since since.
func (n *narrator) await(ctx context.Context, c *cluster, name, kind, want string, since time.Time) time.Duration {
	var answer dns.Answer
	c.poll(ctx, "the answer "+want, func(ctx context.Context) (_ bool, err error) {
		if answer, err = dns.DNSAt(c.dns).Ask(ctx, name, kind); err == nil && answer.Text() != want {
			err = fmt.Errorf("%s %s is answered with %s", name, kind, answer.Text())
		}
		return true, err
	})
	elapsed := time.Since(since)
	host, port, _ := strings.Cut(c.dns, ":")
	n.command("dig +short @%s -p %s %s %s", host, port, strings.TrimSuffix(name, "."), kind)
	if len(answer.Records) == 0 {
		answer.Records = []string{want}
	}
	for _, record := range answer.Records {
		n.show("", "  "+record)
	}
	return elapsed
}

// data returns the data of records in the form of await.
func data(records ...string) string { return strings.Join(slices.Sorted(slices.Values(records)), " ") }

const (
	rows, height, width = 22, 18, 1000
	// least is the shortest time between two lines, and rest how long the last screen is shown.
	least, rest = 45 * time.Millisecond, 3 * time.Second
)

// folders matches paths of this machine.
var folders = regexp.MustCompile(`=/\S*/`)

// recording returns an animated SVG of the story at its own speed, slowed down where it is too fast to read. The lines
// scroll up through a window.
func (n *narrator) recording() string {
	for i := range n.shown[1:] {
		n.shown[i+1].at = max(n.shown[i+1].at, n.shown[i].at+least)
	}
	var frames, texts strings.Builder
	total := n.shown[len(n.shown)-1].at + rest
	for i, each := range n.shown {
		fmt.Fprintf(&frames, "%.2f%%{transform:translateY(%dpx)}", 100*each.at.Seconds()/total.Seconds(),
			(rows-1-i)*height)
		class := ""
		if each.class != "" {
			class = fmt.Sprintf(" class=%q", each.class)
		}
		text := strings.ReplaceAll(folders.ReplaceAllString(each.text, "="), "\t", "  ")
		fmt.Fprintf(&texts, "<text%s y=\"%d\">%s</text>\n", class, i*height, html.EscapeString(text))
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d">
<style>
text{font:13px ui-monospace,monospace;fill:#d0d7de;white-space:pre}.h{fill:#7ee787;font-weight:bold}.c{fill:#79c0ff}
g{transform:translateY(%dpx);animation:s %.1fs step-end infinite}
@keyframes s{0%%{transform:translateY(%dpx)}%s}
</style>
<rect width="100%%" height="100%%" rx="8" fill="#0d1117"/>
<svg x="16" y="16" width="%d" height="%d" viewBox="0 -13 %d %d"><g>
%s</g></svg>
</svg>
`, width, rows*height+32, width, (rows-len(n.shown))*height, total.Seconds(), rows*height, frames.String(), width-32,
		rows*height, width-32, rows*height, texts.String())
}
