// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
)

// TestBorderIsLifted: while a border keeps clients from a member, its copies keep what is known of it. If the border is
// lifted while the member is silent or quarantined, its endpoints are used again, also by a new controller.
func TestBorderIsLifted(t *testing.T) {
	for name, lose := range map[string]func(set *sim.ClusterSet){
		"silent": func(set *sim.ClusterSet) { set.Cluster("west").StopAPI() },
		"silent, after a restart": func(set *sim.ClusterSet) {
			set.Cluster("west").StopAPI()
			sim.Wait(time.Minute)
			set.Cluster("east").StopController()
			set.Cluster("east").StartController()
		},
		"quarantined": func(set *sim.ClusterSet) {
			set.Cluster("east").StopController()
			set.Cluster("west").Withdraw("web") // its only one
			sim.Wait(10 * time.Second)
			set.Cluster("east").StartController()
		},
	} {
		t.Run(name, func(t *testing.T) {
			sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
				east, west := set.Cluster("east"), set.Cluster("west")
				east.Serve("web", false)
				east.ExportWith("web", nil, map[string]string{export.AnnotationWithin: "local"})
				sim.Wait(2 * time.Second)
				west.Serve("web", false, "10.65.0.1")
				west.ExportWith("web", nil, map[string]string{export.AnnotationWithin: "local"})
				sim.Wait(time.Minute)
				expect(t, east, map[string]string{"web": "west/10.65.0.1- -> VIP"})
				lose(set)
				sim.Wait(time.Minute)
				east.ExportWith("web", nil, map[string]string{export.AnnotationWithin: "*"})
				sim.Wait(time.Minute)
				expect(t, east, map[string]string{"web": "west/10.65.0.1 -> VIP"})
			})
		})
	}
}
