// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
)

// A forward is like a port-forward to the controller: its connections come from within the pod.
type forward struct{ net.Listener }

type within struct{ net.Conn }

func (within) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (f forward) Accept() (net.Conn, error) {
	connection, err := f.Listener.Accept()
	return within{connection}, err
}

// get decodes the answer to a question.
func get(t *testing.T, set *sim.ClusterSet, question string, document any) {
	t.Helper()
	east := set.Cluster("east")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: set.Network.Dialer("user")}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://pod"+question, http.NoBody)
	east.Must(err)
	response, err := client.Do(request)
	east.Must(err)
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(document); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v", question, response.StatusCode, err)
	}
}

// TestState queries the state of a controller while members fail in several ways.
func TestState(t *testing.T) {
	sim.Run(t, []string{"east", "west", "north"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		pod, err := set.Network.Listen("pod")
		east.Must(err)
		replica("east-0")(&east.Options)
		east.Options.Listener, east.Options.Version, west.Options.Version = forward{pod}, "v1", "v2"
		east.Restart()
		west.Restart()
		for i, c := range set.Clusters() {
			c.Export(fmt.Sprintf("web:10.6%d.0.1", 4+i))
		}
		set.Cluster("north").Export("db:10.66.0.2")
		sim.Wait(time.Minute)
		look := func() (is state.Cluster, web state.Explanation) {
			t.Helper()
			get(t, set, state.PathStatus, &is)
			get(t, set, state.PathExplain+"?service=demo/web", &web)
			return is, web
		}
		has := func(what string, is state.Cluster, wanted ...string) {
			t.Helper()
			var names []string
			for _, finding := range is.Findings {
				at := slices.IndexFunc(is.Members, func(m state.Member) bool { return strings.Contains(finding.What, m.Cluster) })
				names = append(names, finding.Name+" "+is.Members[at].Cluster)
			}
			if !slices.Equal(names, wanted) {
				t.Errorf("%s: the findings are %q: %+v", what, names, is.Findings)
			}
		}
		confine := func(to string) {
			for _, id := range []string{"north", "west"} {
				east.Put(fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {namespace: %s, name: member-%s, annotations: {%s: %s}}}",
					member.DefaultNamespace, id, member.CIDRsAnnotation, to))
			}
			sim.Wait(time.Minute)
		}
		confine("null")
		is, _ := look()
		has("open to all addresses", is, "member-confined north", "member-confined west")
		confine(`"10.64.0.0/12"`)
		is, web := look()
		has("healthy", is)
		if is.Version != state.Version || is.Cluster != "east" || is.Controller != "v1" || len(is.Members) != 2 ||
			len(is.Imports) != 2 || is.Imports[1].Endpoints != 3 || is.Imports[1].Ready != 3 || is.Members[1].Ready != 1 {
			t.Errorf("the state is %+v", is)
		}
		if is.Members[1].Controller != "v2" {
			t.Errorf("west is %+v", is.Members[1])
		}
		if web.Import == nil || len(web.DNS) != 1 || len(web.Exports) != 3 || len(web.Endpoints) != 3 || len(web.Problems) != 0 {
			t.Errorf("the explanation is %+v", web)
		}

		// An export that contributes nothing has its reason, and a fix.
		north := set.Cluster("north")
		for _, step := range []struct {
			do           func()
			state, check string
		}{
			{func() { north.AnnotateExport("web", export.AnnotationClusters, "south") }, "not chosen", "not-chosen"},
			{func() {
				north.AnnotateExport("web", export.AnnotationClusters, "null")
				north.DeleteService("web")
			}, "not exported", "exports-valid"},
			{func() {
				east.Put(fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {namespace: %s, name: member-north, annotations: {%s: team}}}",
					member.DefaultNamespace, scope.AcceptAnnotation))
			}, "refused", "refused"},
		} {
			step.do()
			sim.Wait(time.Minute)
			_, web = look()
			if last := web.Exports[2]; last.Cluster != "north" || last.State != step.state || len(web.Problems) != 1 ||
				web.Problems[0].Name != step.check || !strings.Contains(web.Problems[0].Fix, "north") {
				t.Errorf("%s: the explanation is %+v", step.state, web)
			}
		}
		north.Withdraw("web")

		west.Put(fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, annotations: {%s: 'true'}}}",
			member.DefaultNamespace, member.DrainAnnotation))
		sim.Wait(time.Minute)
		is, web = look()
		has("drained", is, "drained west")
		if at := slices.IndexFunc(web.Exports, func(e state.Export) bool { return e.Cluster == "west" }); web.Exports[at].State != "fresh, drained" ||
			web.Exports[at].Ready != 0 || web.Exports[at].Endpoints != 1 {
			t.Errorf("the exports are %+v", web.Exports)
		}
		west.API.SetFault("east", forbidden)
		sim.Wait(time.Minute)
		if is, _ = look(); is.Findings[0].Name != "member-reachable" || !strings.Contains(is.Findings[0].Fix, "the rights of clusterset-member") {
			t.Errorf("forbidden: the findings are %+v", is.Findings)
		}
		west.API.SetFault("east", nil)
		west.StopAPI()
		sim.Wait(time.Minute)
		is, web = look()
		if at := is.Members[1]; at.State != "stale" {
			t.Errorf("the silent member is %+v", at)
		}
		has("silent", is, "member-reachable west", "member-fresh west", "drained west")
		if !slices.Equal(web.Problems, is.Findings[1:]) || !strings.Contains(web.Problems[0].What, "No heartbeat from cluster west") {
			t.Errorf("the problems are %+v, and the findings %+v", web.Problems, is.Findings)
		}
		west.StartAPI()
	})
}
