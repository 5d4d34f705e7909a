// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
)

// TestWhatFollowsAWatch: one table.
func TestWhatFollowsAWatch(t *testing.T) {
	busy := apierrors.NewTooManyRequests("busy", 1)
	for name, test := range map[string]struct {
		lasted time.Duration // of the watch before, which was opened for a minute
		listed bool          // since then
		err    error         // of the next watch
		stream bool          // the next watch begins with a list
		want   error
		opened bool // the API server was asked for the watch
	}{
		"it ended at its timeout":                  {lasted: time.Minute, opened: true},
		"it ended just before its timeout":         {lasted: time.Minute - early, opened: true},
		"it broke":                                 {lasted: 58 * time.Second, want: ErrBroken},
		"it broke, and all was listed":             {lasted: time.Second, listed: true, opened: true},
		"it broke, and all is streamed":            {lasted: time.Second, stream: true, opened: true},
		"the API server is too busy":               {lasted: time.Minute, err: busy, want: busy, opened: true},
		"it broke, and the API server is too busy": {lasted: time.Second, err: busy, want: ErrBroken},
		"the API server does not listen": {
			lasted: time.Minute, err: syscall.ECONNREFUSED, want: ErrBroken,
			opened: true,
		},
		"the API server does not stream lists": {
			lasted: time.Minute, err: syscall.EINVAL, stream: true,
			want: syscall.EINVAL, opened: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w watchState
				var failure error
				asked, from := 0, ""
				open := func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
					asked++
					from = options.ResourceVersion
					return nil, failure
				}
				options := metav1.ListOptions{ResourceVersion: "7", TimeoutSeconds: ptr.To[int64](60)}
				if _, err := w.open(t.Context(), options, open); err != nil {
					t.Fatal(err)
				}
				<-time.After(test.lasted)
				if test.listed {
					w.listing()
				}
				want := "7"
				if test.stream {
					options.SendInitialEvents, want = ptr.To(true), ""
				}
				failure = test.err
				_, err := w.open(t.Context(), options, open)
				if !errors.Is(err, test.want) {
					t.Errorf("got error %v, want %v", err, test.want)
				}
				if opened := asked == 2; opened != test.opened || from != want && opened {
					t.Errorf("asked %d times, at last from %q", asked, from)
				}
			})
		})
	}
}
