// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// TestProperties plays answers to lists of the ClusterProperties.
func TestProperties(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resource := clusterProperties.WithVersion("v1beta1")
		client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{
				resource: "ClusterPropertyList", clusterProperties.WithVersion("v1alpha1"): "ClusterPropertyList",
			})
		var mu sync.Mutex
		var answer error
		region := ""
		client.PrependReactor("list", "clusterproperties", func(action clienttesting.Action) (bool, runtime.Object, error) {
			mu.Lock()
			defer mu.Unlock()
			list := &unstructured.UnstructuredList{Object: map[string]any{
				"apiVersion": "about.k8s.io/v1alpha1", "kind": "ClusterPropertyList",
			}}
			switch {
			case answer != nil:
				return true, nil, answer
			case action.GetResource().Version == "v1beta1": // not served
				return true, nil, apierrors.NewNotFound(clusterProperties, "")
			case region != "":
				list.Items = []unstructured.Unstructured{
					{Object: map[string]any{"metadata": map[string]any{"name": "region"}, "spec": map[string]any{"value": region}}},
					{Object: map[string]any{"metadata": map[string]any{"name": "odd"}, "spec": map[string]any{"value": int64(1)}}},
				}
			}
			return true, list, nil
		})
		set := func(err error, value string) {
			mu.Lock()
			defer mu.Unlock()
			answer, region = err, value
		}
		changes := 0
		p := NewProperties(client, clock.RealClock{}, "")
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		expect := func(when, text string, changed int) {
			t.Helper()
			<-time.After(2 * time.Minute)
			synctest.Wait()
			want, _ := scope.ParseProperties(text)
			if got := p.Text(); got != text || !reflect.DeepEqual(p.All(), want) || changes != changed {
				t.Errorf("%s: %q, %v, %d changes; want %q, %d changes", when, got, p.All(), changes, text, changed)
			}
		}
		set(errors.New("unavailable"), "")
		running.Go(func() { p.Run(ctx, func() { changes++ }) })
		expect("without an answer", "", 0)
		set(nil, "eu")
		expect("with an answer", `{"region":"eu"}`, 1)
		set(errors.New("unavailable"), "")
		expect("with an error", `{"region":"eu"}`, 1)
		set(apierrors.NewForbidden(clusterProperties, "", nil), "")
		expect("without the right", `{"region":"eu"}`, 1)
		set(nil, "us")
		expect("with a change", `{"region":"us"}`, 2)
		set(apierrors.NewNotFound(clusterProperties, ""), "")
		expect("without the CRD", "{}", 3)
		stop()
		running.Wait()

		// A leader begins.
		lease := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: member.HeartbeatLease, Annotations: map[string]string{
				scope.PropertiesAnnotation: `{"region":"eu"}`, member.HeartbeatUIDAnnotation: "uid",
			}},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: ptr.To("east"), RenewTime: ptr.To(metav1.NewMicroTime(time.Now())),
			},
		}
		for name, test := range map[string]struct {
			now          string // what the list returns, - for an error, F without the right
			cluster, uid string
			want         string // - if it is waited for
		}{
			"a list":                            {"us", "east", "uid", `{"region":"us"}`},
			"as the heartbeat has them":         {"-", "east", "uid", `{"region":"eu"}`},
			"without the right":                 {"F", "east", "uid", `{"region":"eu"}`},
			"no properties":                     {"", "east", "uid", "{}"},
			"the heartbeat of another id":       {"-", "west", "uid", "-"},
			"the heartbeat of another cluster":  {"-", "east", "other", "-"},
			"of another one, without the right": {"F", "east", "other", ""},
		} {
			p := NewProperties(client, clock.RealClock{}, "")
			set(nil, test.now)
			switch test.now {
			case "-":
				set(errors.New("unavailable"), "")
			case "F":
				set(apierrors.NewForbidden(clusterProperties, "", nil), "")
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			err := p.Begin(ctx, fake.NewClientset(lease), "system", test.cluster, test.uid)
			if got := p.Text(); (err != nil) != (test.want == "-") || got != strings.Trim(test.want, "-") {
				t.Errorf("%s: got %q, %v, want %q", name, got, err, test.want)
			}
			if err != nil { // the flag names the network
				p = NewProperties(client, clock.RealClock{}, "islands")
				if err := p.Begin(t.Context(), fake.NewClientset(lease), "system", test.cluster, test.uid); err != nil || p.Network() != "islands" {
					t.Errorf("%s, with a flag: %v, network %q", name, err, p.Network())
				}
			}
		}
	})
}
