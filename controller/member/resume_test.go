// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterset-dns/clusterset-dns/controller/informer"
)

// TestResume opens a watch that ended again.
func TestResume(t *testing.T) {
	unreachable := errors.New("unreachable")
	for name, test := range map[string]struct {
		listed     string
		now        origin
		err        error
		incomplete bool
		want       error
	}{
		"nothing happened":                         {listed: "a", now: origin{200, "a"}},
		"the first heartbeat came after the list":  {now: origin{200, "a"}},
		"etcd was restored":                        {listed: "a", now: origin{199, "a"}, want: informer.ErrBroken},
		"etcd is another cluster's":                {listed: "a", now: origin{300, "b"}, want: informer.ErrBroken},
		"the heartbeat was deleted":                {listed: "a", now: origin{300, ""}, want: informer.ErrBroken},
		"resourceVersions are not numbers anymore": {listed: "a", now: origin{0, "a"}, want: informer.ErrBroken},
		"the heartbeat cannot be read":             {listed: "a", err: unreachable, want: unreachable},
		"the list was incomplete":                  {listed: "a", now: origin{200, "a"}, incomplete: true, want: informer.ErrBroken},
	} {
		t.Run(name, func(t *testing.T) {
			r := &resumer{read: func(context.Context) (origin, error) { return test.now, test.err }}
			r.listed.Store(&origin{100, test.listed})
			r.incomplete.Store(test.incomplete)
			var from []string
			open := func(version string) error {
				_, err := r.open(t.Context(), metav1.ListOptions{ResourceVersion: version},
					func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
						from = append(from, options.ResourceVersion)
						return watch.NewEmptyWatch(), nil
					})
				return err
			}
			if err := open("100"); err != nil {
				t.Fatalf("the watch after the list: %v", err)
			}
			if err := open("200"); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if opened := len(from) == 2 && from[1] == "200"; opened != (test.want == nil) {
				t.Errorf("watches were opened from %v", from)
			}
		})
	}
}
