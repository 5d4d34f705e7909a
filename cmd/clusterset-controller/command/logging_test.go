// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// TestJSONLog: each line is an object with what a program looks for.
func TestJSONLog(t *testing.T) {
	var out bytes.Buffer
	logger := logr.FromSlogHandler(jsonHandler(&out, 2)).WithValues("member", "west")
	web := types.NamespacedName{Namespace: "demo", Name: "web"}
	logger.Info("One", "service", web)
	logger.Error(errors.New("no answer"), "Two", "lease", klog.KRef("clusterset-dns", "heartbeat"))
	logger.V(2).Info("Three")
	logger.V(3).Info("too much")
	var got []string
	for line := range strings.Lines(out.String()) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if entry["time"] == nil {
			t.Errorf("%q has no time", line)
		}
		delete(entry, "time")
		text, err := json.Marshal(entry)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(text))
	}
	want := []string{
		`{"level":"INFO","member":"west","msg":"One","service":{"name":"web","namespace":"demo"}}`,
		`{"err":"no answer","lease":{"name":"heartbeat","namespace":"clusterset-dns"},"level":"ERROR","member":"west","msg":"Two"}`,
		`{"level":"DEBUG+2","member":"west","msg":"Three"}`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
