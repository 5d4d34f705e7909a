// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"slices"
	"strings"
	"testing"
)

func TestObjects(t *testing.T) {
	for _, name := range Names {
		objects, err := Objects(name, "clusterset-dns")
		if err != nil || len(objects) < 2 {
			t.Errorf("%s: %d objects, %v", name, len(objects), err)
		}
		if text, err := Text(name, "clusterset-dns"); err != nil || !strings.Contains(string(text), "kind:") {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
	if _, err := Objects("nonsense", "clusterset-dns"); err == nil {
		t.Error("there is a manifest called nonsense")
	}
}

func TestTheControllersNamespaceMoves(t *testing.T) {
	text, err := Text(Rights, "mcs")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if strings.Contains(line, "namespace: clusterset-dns") || line == "  name: clusterset-dns" {
			t.Errorf("%q was not moved", line)
		}
	}
}

func TestRightsOfMembers(t *testing.T) {
	objects, err := OfMembers("clusterset-dns")
	if err != nil {
		t.Fatal(err)
	}
	required, err := Required(objects, MemberAccount)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, right := range required {
		got = append(got, RightText(right))
		if slices.Contains(Dangerous("clusterset-dns"), right) {
			t.Errorf("%s is dangerous", RightText(right))
		}
	}
	slices.Sort(got)
	want := []string{
		"get leases.coordination.k8s.io clusterset-dns-heartbeat in namespace clusterset-dns",
		"list endpointslices.discovery.k8s.io",
		"list leases.coordination.k8s.io clusterset-dns-heartbeat in namespace clusterset-dns",
		"watch endpointslices.discovery.k8s.io",
		"watch leases.coordination.k8s.io clusterset-dns-heartbeat in namespace clusterset-dns",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
