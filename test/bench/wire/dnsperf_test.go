// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"testing"
	"time"
)

func TestParseReadsWhatDnsperfPrints(t *testing.T) {
	const output = `DNS Performance Testing Tool
Version 2.10.0

> NOERROR web-0.demo.svc.clusterset.local A 0.000123
> NXDOMAIN none.demo.svc.clusterset.local A 0.001000
> T web-1.demo.svc.clusterset.local A
Statistics:

  Queries sent:         3
  Queries completed:    2 (66.67%)
  Queries lost:         1 (33.33%)

  Run time (s):         1.000123
  Queries per second:   54321.123456
`
	got, err := parse(output)
	if err != nil {
		t.Fatal(err)
	}
	if got.Completed != 2 || got.Lost != 1 || got.PerSecond != 54321.123456 {
		t.Errorf("got %+v", got)
	}
	if len(got.Latencies) != 2 || got.Latencies[0] != 123*time.Microsecond || got.Latencies[1] != time.Millisecond {
		t.Errorf("got latencies %v", got.Latencies)
	}
	if _, err := parse("Error: connection refused"); err == nil {
		t.Error("an output without statistics is read without an error")
	}
}
