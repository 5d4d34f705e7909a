// SPDX-License-Identifier: Apache-2.0

package memberstate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// TestEventIsSafe: messages of a member's API server are cut and escaped in Events and in the log.
func TestEventIsSafe(t *testing.T) {
	var logged string
	recorder := record.NewFakeRecorder(10)
	said := "\x1b[2J\x1b[1;1H\x1b]0;pwned\aall members are fine" + strings.Repeat("x", 60_000)
	err := fmt.Errorf("EndpointSlices of cluster evil: %w", &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 403, Reason: metav1.StatusReasonForbidden, Message: said,
	}})
	r := &Reporter{Logger: funcr.New(func(_, line string) { logged = line }, funcr.Options{}), Recorder: recorder}
	r.Report(member.Problem{Candidate: &member.Candidate{Cluster: "evil", Object: &corev1.Secret{}}, Err: err})
	event := <-recorder.Events
	if len(event) > 1500 || strings.ContainsAny(event, "\x1b\a") {
		t.Errorf("an Event of %d bytes, with %d escape characters", len(event), strings.Count(event, "\x1b"))
	}
	if len(logged) > 2000 || strings.ContainsAny(logged, "\x1b\a") {
		t.Errorf("a line of the log has %d bytes", len(logged))
	}
}
