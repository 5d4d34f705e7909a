// SPDX-License-Identifier: Apache-2.0

package truth

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// parse reads exports, one a line:
//
//	cluster second type[/affinity] ports endpoints [key=value]
//
// Ports are name:number, separated by commas. Endpoints are addresses with a mark: none for ready, ~ for serving and
// terminating, ! for neither ready nor serving.
func parse(t *testing.T, text string) []Export {
	t.Helper()
	var exports []Export
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if len(fields) < 5 {
			t.Fatalf("%q has %d fields", line, len(fields))
		}
		second, err := strconv.Atoi(fields[1])
		if err != nil {
			t.Fatal(err)
		}
		kind, affinity, _ := strings.Cut(fields[2], "/")
		export := Export{
			Cluster: fields[0], Created: time.Unix(int64(second), 0), Headless: kind == "Headless", Affinity: affinity,
		}
		for each := range strings.SplitSeq(fields[3], ",") {
			name, number, _ := strings.Cut(each, ":")
			n, err := strconv.ParseInt(number, 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			export.Ports = append(export.Ports, Port{Name: name, Protocol: "TCP", Number: int32(n)})
		}
		for each := range strings.SplitSeq(fields[4], ",") {
			if each == "-" {
				continue
			}
			address := strings.TrimRight(each, "~!")
			mark := strings.TrimPrefix(each, address)
			export.Endpoints = append(export.Endpoints, Endpoint{
				Address: netip.MustParseAddr(address), Ready: mark == "", Serving: mark != "!",
				Terminating: mark == "~",
			})
		}
		for _, each := range fields[5:] {
			key, value, _ := strings.Cut(each, "=")
			export.Labels = map[string]string{key: value}
		}
		exports = append(exports, export)
	}
	return exports
}

func text(imported Import) string {
	kind := "ClusterSetIP"
	if imported.Headless {
		kind = "Headless"
	}
	ports := make([]string, 0, len(imported.Ports))
	for _, port := range imported.Ports {
		ports = append(ports, fmt.Sprintf("%s:%d", port.Name, port.Number))
	}
	return fmt.Sprintf("%s %s %v %v", kind, strings.Join(ports, ","), imported.Clusters, imported.Conflicts)
}

func TestMergeAndUsable(t *testing.T) {
	for _, c := range []struct{ name, exports, imported, usable string }{
		{name: "none", imported: "none", usable: "[]"},
		{
			name: "one", exports: "east 1 Headless http:80 10.0.0.1,10.0.0.2!,10.0.0.3~",
			imported: "Headless http:80 [east] []", usable: "[10.0.0.1]",
		},
		{
			name:     "the terminating where none is ready",
			exports:  "east 1 Headless http:80 10.0.0.1!,10.0.0.3~\n west 2 Headless http:80 10.0.0.2~",
			imported: "Headless http:80 [east west] []", usable: "[10.0.0.2 10.0.0.3]",
		},
		{
			name:     "the oldest has the type",
			exports:  "east 2 Headless http:80 -\n west 1 ClusterSetIP http:80 -",
			imported: "ClusterSetIP http:80 [east west] [TypeConflict]", usable: "[]",
		},
		{
			name:     "the first by name of two that are equally old",
			exports:  "west 1 ClusterSetIP http:80 -\n east 1 Headless http:80 -",
			imported: "Headless http:80 [east west] [TypeConflict]", usable: "[]",
		},
		{
			name:     "ports are joined, and a name or a number is taken once",
			exports:  "east 1 Headless http:80,sql:5432 -\n north 3 Headless web:80,extra:1 -\n west 2 Headless http:8080,more:2 -",
			imported: "Headless http:80,sql:5432,more:2,extra:1 [east north west] [PortConflict]", usable: "[]",
		},
		{
			name:     "the same ports in another order are no conflict",
			exports:  "east 1 Headless http:80,sql:5432 -\n west 2 Headless sql:5432,http:80 -",
			imported: "Headless http:80,sql:5432 [east west] []", usable: "[]",
		},
		{name: "one port without a name", exports: "east 1 Headless :80 -", imported: "Headless :80 [east] []", usable: "[]"},
		{
			name: "a port without a name beside another", exports: "east 1 Headless :80 -\n west 2 Headless sql:5432 -",
			imported: "Headless tcp-80:80,sql:5432 [east west] [PortConflict]", usable: "[]",
		},
		{
			name:     "affinity and metadata",
			exports:  "east 1 Headless/None http:80 - a=b\n west 2 Headless/ClientIP http:80 -",
			imported: "Headless http:80 [east west] [LabelsConflict SessionAffinityConfigConflict SessionAffinityConflict]", usable: "[]",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			exports := parse(t, c.exports)
			for range 2 { // in any order
				got := "none"
				if imported, ok := Merge(exports); ok {
					got = text(imported)
				}
				if got != c.imported {
					t.Errorf("imported\n got %s\nwant %s", got, c.imported)
				}
				if got := fmt.Sprint(Usable(exports)); got != c.usable {
					t.Errorf("usable\n got %s\nwant %s", got, c.usable)
				}
				slices.Reverse(exports)
			}
		})
	}
}

// TestFamilies: backends of a headless name that have fewer families than others
// are a conflict; those of an IP are not.
func TestFamilies(t *testing.T) {
	for _, headless := range []bool{true, false} {
		merged, _ := Merge(
			[]Export{{Cluster: "east", Headless: headless, DualStack: true}, {Cluster: "west", Headless: headless}})
		if got := slices.Contains(merged.Conflicts, "IPFamilyConflict"); got != headless {
			t.Errorf("headless %v: conflicts %v", headless, merged.Conflicts)
		}
	}
}
