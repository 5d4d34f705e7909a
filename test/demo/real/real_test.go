// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/demo/demotest"
)

func TestMain(m *testing.M) { demotest.Main(main, func() { controlplanetest.Main(m) }) }

func TestStory(t *testing.T) { demotest.Story(t) }

// Of each cluster there are five components, CoreDNS and the controller.
func TestEnds(t *testing.T) { demotest.Ends(t, 15) }
