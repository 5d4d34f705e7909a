// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"fmt"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/datapath/tally"
)

// table collects what was counted. Its methods may be called from any goroutine.
type table struct {
	mu   sync.Mutex
	rows []string
}

// add adds a row: what was done, who answered, and a remark such as the seconds until it was so.
func (t *table) add(what string, counted *tally.Tally, remark string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = append(t.rows, fmt.Sprintf("| %s\t| %d\t| %s\t| %s\t|", what, counted.Total(), counted, remark))
}

// String is the table as text that is Markdown, too.
func (t *table) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 1, ' ', 0)
	fmt.Fprintln(w, "| what\t| connections\t| answered by\t| remark\t|\n| ---\t| ---\t| ---\t| ---\t|")
	for _, row := range t.rows {
		fmt.Fprintln(w, row)
	}
	_ = w.Flush() // a strings.Builder never fails
	return b.String()
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
