// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/demo/demotest"
)

func TestMain(m *testing.M) { demotest.Main(main, func() { os.Exit(m.Run()) }) }

func TestStory(t *testing.T) { demotest.Story(t) }

// Of each cluster there are CoreDNS and the controller.
func TestEnds(t *testing.T) { demotest.Ends(t, 5) }
