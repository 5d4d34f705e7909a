// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// TestProperties plays answers to lists of the ClusterProperties: a region, empty for no property, or why there is none.
func TestProperties(t *testing.T) {
	const unavailable, forbidden, noCRD = "unavailable", "forbidden", "no CRD"
	failures := map[any]error{
		unavailable: errors.New(unavailable), forbidden: apierrors.NewForbidden(clusterProperties, "", nil),
		noCRD: apierrors.NewNotFound(clusterProperties, ""),
	}
	synctest.Test(t, func(t *testing.T) {
		client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{
				clusterProperties.WithVersion("v1beta1"): "ClusterPropertyList", clusterProperties.WithVersion("v1alpha1"): "ClusterPropertyList",
			})
		var answer atomic.Value
		client.PrependReactor("list", "clusterproperties", func(action clienttesting.Action) (bool, runtime.Object, error) {
			region := answer.Load()
			if action.GetResource().Version == "v1beta1" && failures[region] == nil {
				region = noCRD // of this version
			}
			if err := failures[region]; err != nil {
				return true, nil, err
			}
			list := &unstructured.UnstructuredList{Object: map[string]any{
				"apiVersion": "about.k8s.io/v1alpha1", "kind": "ClusterPropertyList",
			}}
			if region != "" {
				list.Items = []unstructured.Unstructured{
					{Object: map[string]any{"metadata": map[string]any{"name": "region"}, "spec": map[string]any{"value": region}}},
					{Object: map[string]any{"metadata": map[string]any{"name": "odd"}, "spec": map[string]any{"value": int64(1)}}},
				}
			}
			return true, list, nil
		})
		changes, told := 0, 0
		p := NewProperties(client, clock.RealClock{}, "")
		ctx, stop := context.WithCancel(klog.NewContext(t.Context(), funcr.New(func(_, line string) {
			if strings.Contains(line, "do not fit") || strings.Contains(line, "Cannot list") {
				told++
			}
		}, funcr.Options{})))
		var running sync.WaitGroup
		answer.Store(unavailable)
		running.Go(func() { p.Run(ctx, func() { changes++ }) })
		for _, step := range []struct {
			answer, text  string
			changes, told int // each problem is reported once
		}{
			{unavailable, "", 0, 1},
			{"eu", `{"region":"eu"}`, 1, 1},
			{unavailable, `{"region":"eu"}`, 1, 2},
			{forbidden, `{"region":"eu"}`, 1, 2},
			{"us", `{"region":"us"}`, 2, 2},
			{noCRD, "{}", 3, 2},
			{strings.Repeat("x", scope.MaxBytes), "{}", 3, 3}, // although the text is the same
		} {
			answer.Store(step.answer)
			<-time.After(2 * propertiesEvery)
			synctest.Wait()
			want, _ := scope.ParseProperties(step.text)
			if got := p.Text(); got != step.text || !reflect.DeepEqual(p.All(), want) || changes != step.changes || told != step.told {
				t.Errorf("%.50q: %q, %v, %d changes, told %d times what is wrong", step.answer, got, p.All(), changes, told)
			}
		}
		stop()
		running.Wait()

		// A leader begins.
		for name, test := range map[string]struct {
			answer, published string
			want              string // - if Begin waits
		}{
			"a list":                            {"us", `{"region":"eu"}`, `{"region":"us"}`},
			"as the heartbeat has them":         {unavailable, `{"region":"eu"}`, `{"region":"eu"}`},
			"without the right":                 {forbidden, `{"region":"eu"}`, `{"region":"eu"}`},
			"no properties":                     {"", `{"region":"eu"}`, "{}"},
			"no heartbeat of this cluster":      {unavailable, "", "-"},
			"an invalid heartbeat":              {unavailable, "null", "-"},
			"without a heartbeat and the right": {forbidden, "", ""},
		} {
			p := NewProperties(client, clock.RealClock{}, "")
			answer.Store(test.answer)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			err := p.Begin(ctx, test.published)
			if got := p.Text(); (err != nil) != (test.want == "-") || got != strings.Trim(test.want, "-") {
				t.Errorf("%s: got %q, %v, want %q", name, got, err, test.want)
			}
			if err != nil { // the flag names the network
				p = NewProperties(client, clock.RealClock{}, "islands")
				if err := p.Begin(t.Context(), test.published); err != nil || p.Network() != "islands" {
					t.Errorf("%s, with a flag: %v, network %q", name, err, p.Network())
				}
			}
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// TestALostAnswer: the properties are listed again, although the answer to a list never came, and so are they at the start.
func TestALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists := 0
		client, err := dynamic.NewForConfigAndClient(&rest.Config{Host: "https://east"}, &http.Client{
			Transport: roundTrip(func(request *http.Request) (*http.Response, error) {
				if lists++; lists == 1 {
					<-request.Context().Done()
					return nil, request.Context().Err()
				}
				return &http.Response{StatusCode: http.StatusNotFound, Body: http.NoBody}, nil
			}),
		})
		must(t, err)
		p := NewProperties(client, clock.RealClock{}, "")
		ctx, stop := context.WithTimeout(t.Context(), 4*propertiesEvery)
		defer stop()
		if p.Run(ctx, func() {}); p.Text() != "{}" {
			t.Errorf("after %d lists, the properties are %q", lists, p.Text())
		}
		lists = 0
		if _, err := ID(t.Context(), client); !apierrors.IsNotFound(err) {
			t.Errorf("after %d lists at the start: %v", lists, err)
		}
	})
}
