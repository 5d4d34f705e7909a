// SPDX-License-Identifier: Apache-2.0

package member

import (
	"io"
	"net/http"
	"syscall"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// leases answers lists of the heartbeat.
type leases struct {
	version, uid string
	err          error
}

func (l leases) serve(t *testing.T) roundTrip {
	list := &coordinationv1.LeaseList{ListMeta: metav1.ListMeta{ResourceVersion: l.version}}
	if l.uid != "" {
		list.Items = []coordinationv1.Lease{{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: "50", Annotations: map[string]string{HeartbeatUIDAnnotation: l.uid},
		}}}
	}
	return func(*http.Request) (io.ReadCloser, error) { return sent(t, list), l.err }
}

// TestUnchanged decides whether a watch that ended at resourceVersion 200 is opened again.
func TestUnchanged(t *testing.T) {
	for name, test := range map[string]struct {
		listed string // - if the list may be incomplete
		now    leases
		want   bool
	}{
		"nothing happened":                         {"a", leases{"200", "a", nil}, true},
		"the first heartbeat came after the list":  {"", leases{"200", "a", nil}, true},
		"etcd was restored":                        {"a", leases{"199", "a", nil}, false},
		"etcd is another cluster's":                {"a", leases{"300", "b", nil}, false},
		"the heartbeat was deleted":                {"a", leases{"300", "", nil}, false},
		"resourceVersions are not numbers anymore": {"a", leases{"x", "a", nil}, false},
		"the heartbeat cannot be read":             {"a", leases{err: syscall.ECONNREFUSED}, false},
		"the list was incomplete":                  {"-", leases{"200", "a", nil}, false},
	} {
		listed := &test.listed
		if *listed == "-" {
			listed = nil
		}
		c := connected(t, (&surroundings{}).west(), "https://west", test.now.serve(t))
		if got := c.unchanged(t.Context(), "200", listed); got != test.want {
			t.Errorf("%s: got %t, want %t", name, got, test.want)
		}
		if test.want && *listed != "a" {
			t.Errorf("%s: the cluster is %q", name, *listed)
		}
	}
}
