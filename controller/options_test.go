// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// TestRedirects: a write that is redirected fails. As the answer to a read, it would pass for a success.
func TestRedirects(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"}}`)
	}))
	defer server.Close()
	options := DefaultOptions()
	options.Config = &rest.Config{Host: server.URL}
	c, err := newController(options)
	if err != nil {
		t.Fatal(err)
	}
	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	if stored, err := c.client.CoreV1().Services("demo").Update(t.Context(), web, metav1.UpdateOptions{}); err == nil {
		t.Errorf("stored is %v", stored)
	}
}

// TestMaxImportMemory: a part of Go's memory limit, else a default.
func TestMaxImportMemory(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	for limit, want := range map[int64]int{100 << 20: 18 << 20, math.MaxInt64: DefaultMaxImportMemory} {
		debug.SetMemoryLimit(limit)
		if got := maxImportMemory(); got != want {
			t.Errorf("limit %d: got %d", limit, got)
		}
	}
}
