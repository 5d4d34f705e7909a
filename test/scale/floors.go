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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// floorOfChanges is the longest time for which the plain client changes endpoints: it keeps nothing that could grow.
const floorOfChanges = 2 * time.Minute

// floors measures a plain client in place of the controller, and compares it with what the controller took.
func floors(ctx context.Context, b *bed) error {
	if err := b.kill(); err != nil {
		return err
	}
	rest, err := b.plain(ctx, "rest")
	if err != nil {
		return err
	}
	for _, name := range b.shape.Namespaces() {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "floor-" + name}}
		if _, err := b.plane.Client().CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
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
	b.compare(whatImport, 1.3, float64(imported.Took), figure.Time)
	b.compare(whatRest, 2, 100*float64(rest.CPU)/float64(rest.Took), percent)
	b.compare(whatMedian, 0, float64(changed.P50), figure.Time)
	b.compare(whatTail, 2, float64(changed.P99), figure.Time)
	b.compare(whatPerChange, 0, float64(changed.CPU)/float64(changed.Count), figure.Time)
	return nil
}

func percent(value float64) string { return fmt.Sprintf("%.2f %%", value) }

// plain runs a part of the plain client.
func (b *bed) plain(ctx context.Context, part string) (floor figure.Floor, err error) {
	b.say("floor of %s", part)
	cmd := exec.CommandContext(ctx, filepath.Join(b.bin, "plain"), "-kubeconfig", string(b.credential), "-namespace",
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

// compare adds the floor to what was measured, if it was, and the ratio, which is to be at most the given one; 0 for any.
func (b *bed) compare(what string, most, floor float64, show func(float64) string) {
	for i := range b.Figures {
		f := &b.Figures[i]
		if f.What != what {
			continue
		}
		ratio := b.ours[what] / floor
		f.Cells = append(f.Cells, show(floor), fmt.Sprintf("%.2f", ratio))
		if most > 0 {
			f.Goal = strings.TrimPrefix(f.Goal+fmt.Sprintf(", ratio ≤ %v", most), ", ")
			f.Verdict = figure.Judge(f.Verdict != figure.Missed, ratio <= most)
		}
	}
}
