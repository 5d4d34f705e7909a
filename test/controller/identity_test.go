// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// TestWrongIDIsTold: a Secret that names the wrong cluster is told of until it
// names the right one.
func TestWrongIDIsTold(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	west.start(t)
	east.start(t)
	mistaken := func(id string, want float64) func(context.Context) error {
		return east.metric(t, "clusterset_controller_member_mistaken", map[string]string{"cluster": id}, want)
	}
	secret := east.putSecret(t, "member-west", "wset", west.kubeconfigOf(t, system, memberName))
	eventually(t, "wrong label", east.event(secret, controller.EventMemberMistaken))
	eventually(t, "wrong label", mistaken("wset", 1))
	itself := east.putSecret(t, "member-itself", "north", east.kubeconfigOf(t, system, memberName))
	eventually(t, "own cluster", east.event(itself, controller.EventMemberMistaken))
	events, err := east.CoreV1().Events(system).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(itself.UID)})
	must(t, err)
	for _, event := range events.Items {
		if event.Reason == controller.EventMemberMistaken && !strings.Contains(event.Message, "same cluster as east") {
			t.Errorf("the Event says %q", event.Message)
		}
	}

	secret.Labels[member.ClusterLabel] = "west"
	_, err = east.CoreV1().Secrets(system).Update(t.Context(), secret, metav1.UpdateOptions{})
	must(t, err)
	eventually(t, "right label", east.event(secret, controller.EventMemberRecognized))
	must(t, mistaken("west", 0)(t.Context()))
}
