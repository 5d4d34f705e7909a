// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/link"
)

// TestFlapping: twice it is believed at once, and the third time once it has
// stayed.
func TestFlapping(t *testing.T) {
	b := newBed(t)
	for _, reason := range []string{"Heard", "Heard", "Flapping"} {
		b.ways[b.west].CutOff(link.Both)
		b.pass(36*time.Second, b.pairs(b.west)...)
		b.judged(b.west, "Silent")
		b.expect(westDemoted)
		b.ways[b.west].Reconnect()
		b.judged(b.west, reason)
	}
	b.pass(45*time.Second, b.pairs()...)
	b.judged(b.west, "Flapping")
	b.expect(westDemoted)
	b.pass(25*time.Second, b.pairs()...)
	b.judged(b.west, "Heard")
	b.expect(healthy)
}

// TestMostExportsLostInOneList: they are kept until they are back, or a person
// says that it is so.
func TestMostExportsLostInOneList(t *testing.T) {
	b := newBed(t)
	b.alone() // what counts is the share of all services
	lost := []string{"solo", "db", "lone"}
	lose := func() {
		b.east.stop()
		for _, name := range lost {
			b.must(b.west.mcs.MulticlusterV1beta1().ServiceExports(b.namespace).Delete(b.Context(), name, metav1.DeleteOptions{}))
			b.eventually("no slices of "+name, func(ctx context.Context) error {
				list, err := b.west.DiscoveryV1().EndpointSlices(b.namespace).List(ctx, metav1.ListOptions{
					LabelSelector: "multicluster.kubernetes.io/source-cluster=west,multicluster.kubernetes.io/service-name=" + name,
				})
				if err == nil && len(list.Items) > 0 {
					err = fmt.Errorf("there are %d", len(list.Items))
				}
				return err
			})
		}
		b.start(b.east)
		b.judged(b.west, "ExportsLost")
		b.expect(westDemoted)
	}
	lose()
	for _, name := range lost {
		b.apply(b.west, b.namespace, "{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {name: "+name+"}}")
	}
	b.beat(b.pairs()...)
	b.expect(healthy)

	lose()
	b.pass(time.Minute, b.pairs()...)
	b.expect(westDemoted)
	b.annotate(b.west, controller.AnnotationConfirm, b.token())
	b.judged(b.west, "Heard")
	b.expect(view{
		web:  healthy.web,
		solo: "none -> NXDOMAIN",
		db:   "north/10.66.0.3 -> 10.66.0.3",
		lone: "none -> NXDOMAIN",
	})
}

// alone waits until what other tests exported is gone.
func (b *bed) alone() {
	b.Helper()
	b.eventually("slices of this test alone", func(ctx context.Context) error {
		for _, c := range b.all() {
			list, err := c.DiscoveryV1().EndpointSlices(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: "multicluster.kubernetes.io/source-cluster"})
			if err != nil {
				return err
			}
			for _, slice := range list.Items {
				if slice.Namespace != b.namespace {
					return fmt.Errorf("%s has slice %s/%s", c.Name(), slice.Namespace, slice.Name)
				}
			}
		}
		return nil
	})
}

// token is what the newest Event of a hold says to confirm.
func (b *bed) token() (token string) {
	b.Helper()
	b.eventually("Event", func(ctx context.Context) error {
		secret, err := b.east.CoreV1().Secrets(system).Get(ctx, "member-west", metav1.GetOptions{})
		if err != nil {
			return err
		}
		events, err := b.east.CoreV1().Events(system).List(ctx, metav1.ListOptions{
			FieldSelector: "reason=" + controller.EventMemberHeld + ",involvedObject.uid=" + string(secret.UID),
		})
		if err != nil {
			return err
		}
		for _, event := range events.Items {
			// They end with it, and it is a time: the last one is the newest.
			_, last, _ := strings.Cut(event.Message, " of this Secret is ")
			token = max(token, last)
		}
		if len(events.Items) < 2 {
			return fmt.Errorf("there are %d Events", len(events.Items))
		}
		return nil
	})
	return token
}

// TestAddressesThatAMemberMayNotHave are left out, and nothing else is.
func TestAddressesThatAMemberMayNotHave(t *testing.T) {
	b := newBed(t)
	confined := healthy
	confined.lone = " -> NXDOMAIN"
	b.annotate(b.west, member.CIDRsAnnotation, "10.65.0.0/30, 2001:db8::/32")
	b.expect(confined)
	// A value that is none opens nothing.
	b.annotate(b.west, member.CIDRsAnnotation, "10.65.0.0")
	b.eventually("Event", func(ctx context.Context) error {
		events, err := b.east.CoreV1().Events(system).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + controller.EventMemberRefused})
		if err == nil && len(events.Items) == 0 {
			err = errors.New("there is none")
		}
		return err
	})
	b.endpoints(b.west, "solo", "10.65.0.1")
	confined.solo = "west/10.65.0.1 -> IP"
	b.expect(confined)
	b.annotate(b.west, member.CIDRsAnnotation, "10.65.0.0/16")
	seen := healthy
	seen.solo = "west/10.65.0.1 -> IP"
	b.expect(seen)
}

// TestDrainOfTheOwnCluster: its own clients leave it, and the others', who
// judge for themselves, do not.
func TestDrainOfTheOwnCluster(t *testing.T) {
	b := newBed(t)
	own := func(want string) {
		b.Helper()
		b.eventually("slices in west", func(ctx context.Context) error {
			list, err := b.west.DiscoveryV1().EndpointSlices(b.namespace).List(ctx, metav1.ListOptions{
				LabelSelector: "multicluster.kubernetes.io/source-cluster=west,multicluster.kubernetes.io/service-name=web",
			})
			if err != nil {
				return err
			}
			got := ""
			for _, slice := range list.Items {
				for _, endpoint := range slice.Endpoints {
					got += endpoint.Addresses[0] + mark(endpoint.Conditions)
				}
			}
			if got != want {
				return fmt.Errorf("got %q, want %q", got, want)
			}
			return nil
		})
	}
	drain := func(value string) {
		b.Helper()
		b.eventually("annotate the namespace", func(ctx context.Context) error {
			namespace, err := b.west.CoreV1().Namespaces().Get(ctx, system, metav1.GetOptions{})
			if err != nil {
				return err
			}
			metav1.SetMetaDataAnnotation(&namespace.ObjectMeta, controller.AnnotationDrain, value)
			_, err = b.west.CoreV1().Namespaces().Update(ctx, namespace, metav1.UpdateOptions{})
			return err
		})
	}
	own("10.65.0.1")
	defer drain("false")
	drain("true")
	own("10.65.0.1~")
	b.expect(healthy)
	drain("false")
	own("10.65.0.1")
}

// TestLeaseOfAMemberByHand: what a person does to it is mended, and decides
// nothing.
func TestLeaseOfAMemberByHand(t *testing.T) {
	b := newBed(t)
	b.lease(b.west, "fresh")
	leases := b.east.CoordinationV1().Leases(system)
	name := controller.MemberLeasePrefix + b.west.Name()
	b.eventually("edit", func(ctx context.Context) error {
		lease, err := leases.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		lease.Annotations = map[string]string{controller.MemberStateAnnotation: "gone"}
		lease.Spec.RenewTime = nil
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		return err
	})
	b.pass(20*time.Second, b.pairs()...)
	b.lease(b.west, "fresh")
	b.expect(healthy)

	b.must(leases.Delete(b.Context(), name, metav1.DeleteOptions{}))
	b.pass(20*time.Second, b.pairs()...)
	b.lease(b.west, "fresh")
	b.expect(healthy)

	// It goes when the member leaves.
	b.must(b.east.CoreV1().Secrets(system).Delete(b.Context(), "member-west", metav1.DeleteOptions{}))
	b.expect(westGone)
	b.eventually("no Lease", func(ctx context.Context) error {
		_, err := leases.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there, or: %w", err)
	})
}
