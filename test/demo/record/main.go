// SPDX-License-Identifier: Apache-2.0

// Command record runs a demo, whose path is its argument, and prints a recording: an animated SVG of what it shows, at its
// own speed, but no faster than one can follow. What kubectl prints is left out.
package main

import (
	"bufio"
	"fmt"
	"html"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

const (
	rows, height, width = 22, 18, 1000
	// least is the time between two lines, and rest how long the last screen stays.
	least, rest = 45 * time.Millisecond, 3 * time.Second
)

// A line is shown at a time after the beginning.
type line struct {
	at   time.Duration
	text string
}

func main() {
	lines, err := run(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
	fmt.Print(render(lines))
}

// folders are those of this machine.
var folders = regexp.MustCompile(`=/\S*/`)

// run returns the lines of a demo that are shown.
func run(path string) (lines []line, err error) {
	command := exec.Command(path)
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	command.Stderr = os.Stderr
	if err := process.StartTied(command); err != nil {
		return nil, err
	}
	began, dig := time.Now(), false
	scanner := bufio.NewScanner(out)
	for scanner.Scan() {
		text := scanner.Text()
		if strings.HasPrefix(text, "$ ") {
			dig = strings.HasPrefix(text, "$ dig")
		}
		if text == "" || !dig && strings.HasPrefix(text, "  ") && !strings.HasPrefix(text, "   ") ||
			strings.HasPrefix(text, "    ") {
			continue
		}
		at := time.Since(began)
		if len(lines) > 0 {
			at = max(at, lines[len(lines)-1].at+least)
		}
		text = strings.ReplaceAll(folders.ReplaceAllString(text, "="), "\t", "  ")
		lines = append(lines, line{at, text})
	}
	return lines, command.Wait()
}

// render scrolls all lines through a window, bottom up.
func render(lines []line) string {
	var frames, texts strings.Builder
	total := lines[len(lines)-1].at + rest
	for i, each := range lines {
		fmt.Fprintf(&frames, "%.2f%%{transform:translateY(%dpx)}", 100*each.at.Seconds()/total.Seconds(),
			(rows-1-i)*height)
		class := ""
		switch {
		case strings.HasPrefix(each.text, "== "):
			class = ` class="h"`
		case strings.HasPrefix(each.text, "$ "):
			class = ` class="c"`
		}
		fmt.Fprintf(&texts, "<text%s y=\"%d\">%s</text>\n", class, i*height, html.EscapeString(each.text))
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
`, width, rows*height+32, width, (rows-len(lines))*height, total.Seconds(), rows*height, frames.String(), width-32,
		rows*height, width-32, rows*height, texts.String())
}
