// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"net/http"
	"sync/atomic"
	"time"
)

// A serverClock learns from the answers of an API server how far its clock is
// ahead of the local one. The header Date has whole seconds, so that less than
// that is no difference.
type serverClock struct {
	offset atomic.Int64
}

func (s *serverClock) ahead() time.Duration { return time.Duration(s.offset.Load()) }

func (s *serverClock) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		sent := time.Now()
		response, err := next.RoundTrip(request)
		if err == nil {
			s.note(response.Header.Get("Date"), sent, time.Now())
		}
		return response, err
	})
}

// note takes the date of an answer that was written between two local times.
func (s *serverClock) note(date string, sent, received time.Time) {
	at, err := http.ParseTime(date)
	if err != nil {
		return
	}
	switch {
	case at.Add(time.Second).Before(sent): // behind
		s.offset.Store(int64(at.Add(time.Second).Sub(sent)))
	case at.After(received): // ahead
		s.offset.Store(int64(at.Sub(received)))
	default:
		s.offset.Store(0)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
