// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

// versions tells of each request for a version, and answers with what it
// receives, or with an error where that is empty.
type versions struct {
	asked   chan struct{}
	answers chan string
}

func (v versions) RoundTrip(request *http.Request) (*http.Response, error) {
	v.asked <- struct{}{}
	answer, status := <-v.answers, http.StatusOK
	if request.URL.Path != "/version" || answer == "" {
		status = http.StatusForbidden
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(answer)), Request: request}, nil
}

// TestFollowVersion: another version is told once, and no answer is no version.
func TestFollowVersion(t *testing.T) {
	server := versions{asked: make(chan struct{}), answers: make(chan string)}
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "https://east", Transport: server})
	if err != nil {
		t.Fatal(err)
	}
	now := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	told := 0
	var group sync.WaitGroup
	group.Go(func() { followVersion(ctx, client.Discovery().RESTClient(), now, func() { told++ }) })
	for _, step := range []struct {
		answer string
		before int // how often it was told before
	}{{"1.33", 0}, {"1.33", 0}, {"", 0}, {"1.33", 0}, {"1.34", 0}, {"1.34", 1}, {"", 1}, {"1.33", 1}, {"end", 2}} {
		<-server.asked // so that the answer before is dealt with
		if told != step.before {
			t.Errorf("before %q it was told %d times, want %d", step.answer, told, step.before)
		}
		if step.answer == "end" {
			stop()
		} else {
			now.Step(versionInterval)
		}
		server.answers <- step.answer
	}
	group.Wait()
}
