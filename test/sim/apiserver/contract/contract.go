// SPDX-License-Identifier: Apache-2.0

// Package contract lists what clients may expect of an API server: operations and their results. The model of package
// apiserver and a real kube-apiserver must both pass.
package contract

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// An Operation is a few requests and the text of their results.
type Operation struct {
	Name string
	// Run calls must if a request fails and its result is not part of the text.
	Run  func(ctx context.Context, c *Client) string
	Want string
}

// A Client has all rights in the API server under test. Each operation has its own namespace.
type Client struct {
	kubernetes.Interface
	Dynamic   dynamic.Interface
	Namespace string
	Maps      corev1client.ConfigMapInterface // in the namespace
}

var (
	mcs     = schema.GroupVersion{Group: v1beta1.GroupVersion.Group, Version: v1beta1.GroupVersion.Version}
	exports = mcs.WithResource("serviceexports")
	imports = mcs.WithResource("serviceimports")
)

// Test runs every operation against the API server of the configuration. The server must have the
// CustomResourceDefinitions of the MCS API, a garbage collector and a namespace controller.
func Test(t *testing.T, config *rest.Config) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	for i, each := range slices.Concat(objects, custom, lists, watches, deletions) {
		got, err := try(func() string {
			return each.Run(t.Context(), newClient(t.Context(), config, fmt.Sprintf("contract-%d", i)))
		})
		switch {
		case err != nil:
			t.Errorf("%s: %v", each.Name, err)
		case got != each.Want:
			t.Errorf("%s:\ngot  %s\nwant %s", each.Name, got, each.Want)
		}
	}
}

// newClient returns a client with a new namespace.
func newClient(ctx context.Context, config *rest.Config, namespace string) *Client {
	typed := need(kubernetes.NewForConfig(config))
	need(typed.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		metav1.CreateOptions{}))
	return &Client{typed, need(dynamic.NewForConfig(config)), namespace, typed.CoreV1().ConfigMaps(namespace)}
}

// must ends an operation if there is an error.
func must(err error) {
	if err != nil {
		panic(failed{err})
	}
}

// need is must for functions with a result.
func need[T any](value T, err error) T {
	must(err)
	return value
}

type failed struct{ error }

// try returns the result of an operation, or the error with which must ended it.
func try(run func() string) (got string, err error) {
	defer func() {
		switch problem := recover().(type) {
		case nil:
		case failed:
			err = problem.error
		default:
			panic(problem)
		}
	}()
	return run(), nil
}

// result returns how a request ended: "ok", or the reason and the code of its refusal.
func result(err error) string {
	if err == nil {
		return "ok"
	}
	status, ok := err.(apierrors.APIStatus)
	if !ok {
		return err.Error()
	}
	return fmt.Sprintf("%s %d", status.Status().Reason, status.Status().Code)
}

// results joins the results of several requests.
func results(errs ...error) string {
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = result(err)
	}
	return strings.Join(texts, ", ")
}

// words joins values with spaces.
func words(values ...any) string { return strings.TrimSuffix(fmt.Sprintln(values...), "\n") }

// patience is how long an operation waits for a state.
const patience = 20 * time.Second

// until waits for a state that controllers produce.
func until(ctx context.Context, state func() bool) {
	must(wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true,
		func(context.Context) (bool, error) { return state(), nil }))
}

// events returns the next events of a watch, without plain bookmarks.
func events(ctx context.Context, w watch.Interface, count int) string {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var texts []string
	for len(texts) < count {
		select {
		case event, open := <-w.ResultChan():
			if !open {
				return strings.Join(append(texts, "end"), ", ")
			}
			m, ok := event.Object.(metav1.Object)
			switch {
			case !ok:
				texts = append(texts, fmt.Sprintf("%s %s", event.Type, result(apierrors.FromObject(event.Object))))
			case event.Type == watch.Bookmark && m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "":
			case event.Type == watch.Bookmark:
				texts = append(texts, "BOOKMARK initial")
			default:
				texts = append(texts, fmt.Sprintf("%s %s", event.Type, m.GetName()))
			}
		case <-ctx.Done():
			must(fmt.Errorf("after %q: no further event", texts))
		}
	}
	return strings.Join(texts, ", ")
}

// TestRestart asserts that after a restart of the only API server, a watch from before it gets 410. restart must return
// once the server answers.
func TestRestart(t *testing.T, config *rest.Config, restart func()) {
	ctx := t.Context()
	got, err := try(func() string {
		c := newClient(ctx, config, "contract-restart")
		version := fill(ctx, c, "red", "a")
		fill(ctx, c, "red", "b")
		restart()
		w := need(c.Maps.Watch(ctx, metav1.ListOptions{ResourceVersion: version, LabelSelector: ours}))
		defer w.Stop()
		return events(ctx, w, 1)
	})
	if err != nil || got != "ERROR Expired 410" {
		t.Errorf("got %q, %v", got, err)
	}
}

// export returns a ServiceExport.
func export(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": mcs.String(), "kind": "ServiceExport", "metadata": map[string]any{"name": name},
	}}
}

// service returns a Service with one port.
func service(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}
}

// configMap returns a ConfigMap with a label.
func configMap(name, color string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"color": color}}}
}
