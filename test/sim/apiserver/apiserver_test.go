// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/mcs-api/config/crd"
	"sigs.k8s.io/yaml"

	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver/contract"
)

// TestContract holds the model to what a real kube-apiserver is held to.
func TestContract(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New(apiserver.Options{Name: "east", Administrator: "admin"})
		config := &rest.Config{Host: "https://east", Transport: server, QPS: -1, BearerToken: "admin"}
		installCRDs(t, config)
		contract.Test(t, config)
	})
}

// TestContractRestart holds it to what a watch gets after a restart.
func TestContractRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New(apiserver.Options{Name: "east"})
		config := &rest.Config{Host: "https://east", Transport: server, QPS: -1}
		contract.TestRestart(t, config, func() {
			server.Stop()
			server.Start()
		})
	})
}

func installCRDs(t *testing.T, config *rest.Config) {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	definitions := schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	for _, text := range [][]byte{crd.ServiceExportCRD, crd.ServiceImportCRD} {
		definition := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &definition.Object); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Resource(definitions).Create(context.Background(), definition,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCompaction asserts what a client sees of revisions that are gone: lists
// and watches from there end with 410, and open watches miss nothing.
func TestCompaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New(apiserver.Options{Name: "east"})
		client, create := configMaps(t, server)
		old := create("a")
		open, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: old})
		if err != nil {
			t.Fatal(err)
		}
		defer open.Stop()
		create("b")
		page, err := client.List(t.Context(), metav1.ListOptions{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		create("c")
		server.Compact()
		if _, err := client.List(t.Context(),
			metav1.ListOptions{Limit: 1, Continue: page.Continue}); !apierrors.IsResourceExpired(err) {
			t.Errorf("a page of a compacted revision: %v, want 410", err)
		}
		late, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: old})
		if err != nil {
			t.Fatal(err)
		}
		defer late.Stop()
		if event := <-late.ResultChan(); !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
			t.Errorf("a watch from a compacted revision: %v, want 410", event)
		}
		for _, want := range []string{"b", "c"} {
			if event := <-open.ResultChan(); event.Object.(*corev1.ConfigMap).Name != want {
				t.Errorf("the open watch: %v, want %s", event, want)
			}
		}
	})
}

// configMaps is a client of a server's ConfigMaps, and a function that creates one and returns its revision.
func configMaps(t *testing.T, server *apiserver.Server) (corev1client.ConfigMapInterface, func(name string) string) {
	client := kubernetes.NewForConfigOrDie(
		&rest.Config{Host: "https://east", Transport: server, QPS: -1}).CoreV1().ConfigMaps("default")
	return client, func(name string) string {
		created, err := client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}},
			metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return created.ResourceVersion
	}
}

// TestRestore asserts that a server that is restored from a backup is as it
// was, gives its revisions out again, and ends its watches.
func TestRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New(apiserver.Options{Name: "east"})
		client, create := configMaps(t, server)
		create("a")
		backup := server.Backup()
		lost := create("b")
		w, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: lost})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		server.Restore(backup)
		if event, open := <-w.ResultChan(); open {
			t.Errorf("a watch of before the restore: %v, want its end", event)
		}
		if _, err := client.Get(t.Context(), "b", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("what was created after the backup: %v, want NotFound", err)
		}
		if again := create("c"); again != lost {
			t.Errorf("the revision after the restore is %s, want %s again", again, lost)
		}
	})
}
