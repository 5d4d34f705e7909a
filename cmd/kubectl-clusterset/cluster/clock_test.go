// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"net/http"
	"testing"
	"time"
)

func TestServerClock(t *testing.T) {
	sent := time.Date(2026, 11, 21, 12, 0, 0, 700e6, time.UTC)
	received := sent.Add(100 * time.Millisecond)
	for name, test := range map[string]struct {
		date string
		want time.Duration
	}{
		"the same second":  {"Sat, 21 Nov 2026 12:00:00 GMT", 0},
		"ahead":            {"Sat, 21 Nov 2026 12:01:00 GMT", 59200 * time.Millisecond},
		"behind":           {"Sat, 21 Nov 2026 11:59:00 GMT", -59700 * time.Millisecond},
		"no date":          {"", time.Hour},
		"what is no date ": {"now", time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			clock := &serverClock{}
			clock.offset.Store(int64(time.Hour)) // as it was known before
			clock.note(test.date, sent, received)
			if got := clock.ahead(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestClockFollowsAnswers(t *testing.T) {
	clock := &serverClock{}
	wrapped := clock.wrap(roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{
			Header: http.Header{"Date": {time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)}},
			Body:   http.NoBody,
		}, nil
	}))
	response, err := wrapped.RoundTrip(&http.Request{})
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if ahead := clock.ahead(); ahead < 59*time.Minute || ahead > time.Hour {
		t.Errorf("got %s", ahead)
	}
}
