// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"maps"
	"testing"

	dto "github.com/prometheus/client_model/go"
)

// metric is nil once a gauge of the cluster's controller has a value.
func (c *cluster) metric(t testing.TB, name string, labels map[string]string, want float64) func(context.Context) error {
	t.Helper()
	return func(context.Context) error {
		got, err := c.gather(name, labels)
		if err != nil {
			return err
		}
		if got == nil || got.GetGauge().GetValue() != want {
			return fmt.Errorf("%s%v: got %v, want %v", name, labels, got, want)
		}
		return nil
	}
}

// gather returns a metric of the cluster's controller, nil where it has none
// with these labels.
func (c *cluster) gather(name string, labels map[string]string) (*dto.Metric, error) {
	families, err := c.options.Registry.Gather()
	if err != nil {
		return nil, err
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			got := map[string]string{}
			for _, pair := range metric.GetLabel() {
				got[pair.GetName()] = pair.GetValue()
			}
			if maps.Equal(got, labels) || len(got) == 0 && len(labels) == 0 {
				return metric, nil
			}
		}
	}
	return nil, nil
}
