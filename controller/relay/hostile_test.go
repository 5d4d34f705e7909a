// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/relay/mailbox"
)

// slow takes a time for each deletion.
type slow struct {
	coreclient.ConfigMapInterface
	after time.Duration
}

func (s slow) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	time.Sleep(s.after) //nolint:forbidigo // advances the virtual time of the synctest bubble
	return s.ConfigMapInterface.Delete(ctx, name, options)
}

// serveEndlessly has a relay return a page, and always another one.
func (b *bed) serveEndlessly(name string, page *corev1.ConfigMapList) *int {
	pages := new(int)
	page.Continue = "more"
	b.relays[name].PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		if *pages++; *pages > 20_000 {
			return true, &corev1.ConfigMapList{}, nil
		}
		return true, page, nil
	})
	return pages
}

// TestAnEndlessMailbox: a relay whose list does not end is reported, whether or not its pages are empty.
func TestAnEndlessMailbox(t *testing.T) {
	for _, size := range []int{0, 1000} {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t, "one")
			page := &corev1.ConfigMapList{}
			for i := range size {
				page.Items = append(page.Items, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("x", i)}})
			}
			pages := b.serveEndlessly("one", page)
			b.start()
			b.expectEvent("more than 5000 records")
			if *pages > 5001 {
				t.Errorf("%d pages were read", *pages)
			}
			b.stop()
		})
	}
}

// TestForeignNamesAreBounded: of the names of foreign records a fixed number is kept, and none that is too long.
func TestForeignNamesAreBounded(t *testing.T) {
	r := &relay{foreign: map[string]struct{}{}}
	r.addForeign(strings.Repeat("x", 1<<20))
	if len(r.foreign) != 0 {
		t.Error("a name of 1 MiB is kept")
	}
	for i := range 5000 {
		r.addForeign(fmt.Sprint("x", i))
	}
	if len(r.foreign) != maxForeign {
		t.Errorf("%d names are kept", len(r.foreign))
	}
}

// TestForeignRecordsDoNotDelayTheHeartbeat: the first heartbeat waits for one deletion, not for 100.
func TestForeignRecordsDoNotDelayTheHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "one")
		b.publish("a", "10.0.0.1")
		namespace := mailbox.Namespace("", "east")
		selected := map[string]string{export.LabelSourceCluster: "east"}
		for i := range 100 {
			_, err := b.relays["one"].CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("x", i), Labels: selected},
			}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
		}
		b.slow = time.Second
		b.start()
		b.renew()
		time.Sleep(b.slow) //nolint:forbidigo // advances the virtual time of the synctest bubble
		synctest.Wait()
		leases, err := b.relays["one"].CoordinationV1().Leases(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(leases.Items) != 1 {
			t.Errorf("there is no heartbeat yet: %v", err)
		}
		time.Sleep(15 * time.Second) //nolint:forbidigo // advances the virtual time of the synctest bubble
		b.renew()
		b.expect("one", 1, map[string]string{"a": "10.0.0.1"})
		b.stop()
	})
}

// TestAWriteOfTheLastLeader: a write that was in flight when the leader changed, and arrives after the mailbox was read,
// is undone within 21 seconds.
func TestAWriteOfTheLastLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "one")
		b.publish("a", "10.0.0.1")
		b.start()
		b.renew()
		records := b.relays["one"].CoreV1().ConfigMaps(mailbox.Namespace("", "east"))
		name := mailbox.RecordName(types.NamespacedName{Namespace: "demo", Name: "a"})
		late, err := records.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		late = late.DeepCopy()
		b.stop()
		b.publish("a", "10.0.0.2")
		b.start()
		b.renew()
		time.Sleep(requestTimeout) //nolint:forbidigo // advances the virtual time of the synctest bubble
		late.ResourceVersion = ""
		if _, err := records.Update(t.Context(), late, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Second) //nolint:forbidigo // advances the virtual time of the synctest bubble
		b.renew()
		b.expect("one", 1, map[string]string{"a": "10.0.0.2"})
		b.stop()
	})
}

// TestALongErrorIsCut: an Event has at most about 1 KiB of what a relay says.
func TestALongErrorIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "one")
		b.refuse = func(clienttesting.Action) error { return errors.New(strings.Repeat("ü", 1<<20)) }
		b.start()
		if event := <-b.events.Events; len(event) > maxText+300 || !strings.Contains(event, "ü...") {
			t.Errorf("an Event of %d bytes", len(event))
		}
		b.stop()
	})
}
