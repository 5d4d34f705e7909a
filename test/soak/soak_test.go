// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

var must = controlplanetest.Must

// TestSoak is the soak of two minutes: one storm and one calm.
func TestSoak(t *testing.T) {
	bin, err := programs.Build(t.Context(), "cmd/coredns", "cmd/clusterset-controller")
	must(t, err)
	var text bytes.Buffer
	o := options{
		lasts: 2 * time.Minute, every: 25 * time.Millisecond, seed: uint64(time.Now().UnixNano()), bin: bin,
		folder: t.ArtifactDir(),
	}
	must(t, run(t.Context(), o, io.MultiWriter(&text, t.Output())))
	// What was judged is enough to say something.
	for figure, least := range map[string]int{
		`(\d+)  query: A`: 5000, `(\d+) of them for services that were healthy`: 1000,
		`(\d+) of them withdrawn just before`: 10, `(\d+)  operation: readiness`: 20, `(\d+)  operation: withdraw`: 2,
	} {
		found := regexp.MustCompile(figure).FindSubmatch(text.Bytes())
		if found == nil {
			t.Errorf("no figure %s", figure)
			continue
		}
		if count, err := strconv.Atoi(string(found[1])); err != nil || count < least {
			t.Errorf("%s: want at least %d", found[0], least)
		}
	}
}
