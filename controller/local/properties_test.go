// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
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
		p := NewProperties(client, clock.RealClock{})
		p.Handle(func() { changes++ })
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		expect := func(when string, known bool, text string, changed int) {
			t.Helper()
			<-time.After(2 * time.Minute)
			synctest.Wait()
			is := false
			select {
			case <-p.known:
				is = true
			default:
			}
			if is != known || p.Text() != text || len(p.All()) != min(1, len(text)) || changes != changed {
				t.Errorf("%s: known %v, %q, %v, %d changes; want %v, %q, %d changes", when, is, p.Text(), p.All(), changes,
					known, text, changed)
			}
		}
		set(errors.New("unavailable"), "")
		running.Go(func() { p.Run(ctx) })
		expect("without an answer", false, "", 0)
		set(nil, "eu")
		expect("with an answer", true, `{"region":"eu"}`, 1)
		set(errors.New("unavailable"), "")
		expect("with an error", true, `{"region":"eu"}`, 1)
		set(apierrors.NewForbidden(clusterProperties, "", nil), "")
		expect("without the right", true, `{"region":"eu"}`, 1)
		set(nil, "us")
		expect("with a change", true, `{"region":"us"}`, 2)
		set(apierrors.NewNotFound(clusterProperties, ""), "")
		expect("without the CRD", true, "", 3)
		stop()
		running.Wait()

		// A role of a version before lacks the right.
		set(apierrors.NewForbidden(clusterProperties, "", nil), "")
		p, changes = NewProperties(client, clock.RealClock{}), 0
		ctx, stop = context.WithCancel(t.Context())
		running.Go(func() { p.Run(ctx) })
		expect("at the start, without the right", true, "", 0)
		stop()
		running.Wait()
	})
}
