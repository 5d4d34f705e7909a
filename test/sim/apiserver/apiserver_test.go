// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
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
