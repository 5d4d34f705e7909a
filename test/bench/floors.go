// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// floorOfChanges is the longest time for which the plain client changes endpoints: it keeps nothing that could grow.
const floorOfChanges = 2 * time.Minute

// floors measures a plain client in place of the controller, and compares it with what the controller took.
func floors(ctx context.Context, b *bed) error {
	local := b.local()
	if err := kill(&local.controller); err != nil {
		return err
	}
	rest, err := b.plain(ctx, "rest")
	if err != nil {
		return err
	}
	for _, name := range b.shape.Namespaces() {
		if err := local.objects.Namespaces(ctx, "floor-"+name); err != nil {
			return err
		}
	}
	imported, err := b.plain(ctx, "import")
	if err != nil {
		return err
	}
	changed, err := b.plain(ctx, "changes")
	if err != nil {
		return err
	}
	b.compare(whatImport, float64(imported.Took), figure.Time, figure.Ratio(1.3))
	b.compare(whatRest, 100*float64(rest.CPU)/float64(rest.Took), figure.Percent, figure.Ratio(2))
	b.compare(whatMedian, float64(changed.P50), figure.Time, nil)
	b.compare(whatTail, float64(changed.P99), figure.Time, figure.Ratio(2))
	b.compare(whatPerChange, float64(changed.CPU)/float64(changed.Count), figure.Time, nil)
	return nil
}

// compare compares a figure with its floor, if it was measured.
func (b *bed) compare(what string, floor float64, show func(float64) string, limit *figure.Limit) {
	for _, f := range b.Figures {
		if f.What == what {
			f.Compare(floor, show, limit)
		}
	}
}

// plain runs a part of the plain client.
func (b *bed) plain(ctx context.Context, part string) (floor figure.Floor, err error) {
	b.say("floor of %s", part)
	cmd := exec.CommandContext(ctx, filepath.Join(b.bin, "plain"), "-kubeconfig", string(b.local().credential), "-namespace",
		clusterset.Namespace, "-rate", strconv.Itoa(b.rate), "-for", map[string]string{
			"rest": b.rest.String(), "changes": min(b.changes, floorOfChanges).String(), "import": "0s",
		}[part], part)
	var output, complaint strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &complaint
	if err := process.StartTied(cmd); err != nil {
		return floor, err
	}
	if err := cmd.Wait(); err != nil {
		return floor, fmt.Errorf("%w: %s", err, complaint.String())
	}
	return floor, json.Unmarshal([]byte(output.String()), &floor)
}
