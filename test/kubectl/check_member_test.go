// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/link"
)

const (
	// ofWest is the credential by which east reads west.
	ofWest = "kubectl --context east -n clusterset-dns get secret member-west -o jsonpath={.data.kubeconfig} | base64 -d"
)

// replaced has east read west by what a command makes.
func replaced(command string) string {
	return "C=$(" + command + ` | base64 -w0)
kubectl --context east -n clusterset-dns patch secret member-west -p '{"data":{"kubeconfig":"'$C'"}}'`
}

// token is what says of itself when it ends; no API server takes it.
func token(issued, expires time.Duration) string {
	claims := fmt.Sprintf(`{"iat":%d,"exp":%d}`, time.Now().Add(issued).Unix(), time.Now().Add(expires).Unix())
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".e30"
}

func (b *bed) rejoin(t *testing.T) { b.do(t, b.joinArgs()...) }

var memberFaults = []fault{
	{
		name: "a cluster that is not joined", says: []string{"joined east"},
		shell: "kubectl --context east -n clusterset-dns delete secret member-west",
	},
	{
		name: "a credential that is none", says: []string{"credential-usable east"},
		shell: `kubectl --context east -n clusterset-dns patch secret member-west -p '{"data":{"kubeconfig":"bm8="}}'`,
	},
	{
		name: "ranges that are none", says: []string{"credential-usable east"},
		shell: "kubectl --context east -n clusterset-dns annotate secret member-west clusterset-dns.github.io/cidrs=everywhere",
		fill:  map[string]string{"<ranges of its pods>": "0.0.0.0/0"},
		after: "kubectl --context east -n clusterset-dns annotate secret member-west clusterset-dns.github.io/cidrs-",
	},
	{
		name: "an id that is none", says: []string{"credential-usable east"}, also: []string{"joined east"},
		shell: "kubectl --context east -n clusterset-dns label secret member-west clusterset-dns.github.io/cluster=No_Id --overwrite",
		fill:  map[string]string{"<id of the cluster that it leads to>": "west"},
	},
	{
		name: "a credential of the cluster itself", says: []string{"credential-usable east"},
		shell: `kubectl --context east -n clusterset-dns get secret member-west -o yaml | sed '/uid:/d; s/name: member-west/name: itself/; s#/cluster: west#/cluster: east#' | kubectl --context east create -f -`,
	},
	{
		name: "a credential that ends soon", says: []string{"credential-lasts east"}, also: []string{"member-reachable east", "member-fresh east"},
		do: func(t *testing.T, b *bed) {
			b.shell(t, replaced(ofWest+" | sed 's/token: .*/token: "+token(-300*24*time.Hour, 48*time.Hour)+"/'"))
		},
	},
	{
		name: "a credential that has ended", says: []string{"credential-lasts east"}, also: []string{"member-reachable east", "member-fresh east"},
		do: func(t *testing.T, b *bed) {
			b.shell(t, replaced(ofWest+" | sed 's/token: .*/token: "+token(-300*24*time.Hour, -48*time.Hour)+"/'"))
		},
	},
	{
		name: "a second credential", says: []string{"credential-single east"},
		shell: `kubectl --context east -n clusterset-dns get secret member-west -o yaml | sed '/uid:/d; s/name: member-west/name: second-west/' | kubectl --context east create -f -`,
	},
	{
		name: "a wrong address", says: []string{"member-reachable east"}, also: []string{"member-fresh east"},
		shell: replaced(ofWest + " | sed 's#https://.*#https://127.0.0.1:1#'"),
	},
	{
		name: "a way that is cut", says: []string{"member-reachable east", "member-reachable north", "in-step east", "in-step north"}, also: []string{"member-fresh east", "member-fresh north"},
		do: func(t *testing.T, b *bed) {
			b.rejoin(t) // by the ways that can be cut
			b.cutOff(t, b.west)
			b.export(t, "checked/b", b.west)
		},
		hand: map[string]func(*testing.T, *bed){
			"Have the API server and the controller": func(_ *testing.T, b *bed) { b.west.way.Reconnect() },
			"Have the controller read":               func(_ *testing.T, b *bed) { b.west.way.Reconnect() },
		},
		after: "kubectl clusterset unexport checked/b --contexts west",
	},
	{
		name: "an id that is another", says: []string{"member-identity east"}, also: []string{"joined east"},
		shell: "kubectl --context east -n clusterset-dns label secret member-west clusterset-dns.github.io/cluster=nobody --overwrite",
	},
	{
		name: "the credential of another cluster", says: []string{"member-identity east"}, also: []string{"member-held east", "member-fresh east"},
		shell: replaced("kubectl --context east -n clusterset-dns get secret member-north -o jsonpath={.data.kubeconfig} | base64 -d"),
	},
	{
		name: "a member that lost most of its exports", says: []string{"member-held east"}, also: []string{"in-step east"},
		which: "confirm=",
		do: func(t *testing.T, b *bed) {
			exports := []string{"a", "b", "c", "held"}
			for _, name := range exports {
				b.export(t, "checked/"+name, b.west)
			}
			b.unbroken(t)
			b.stopController(t, b.east)
			for _, name := range exports {
				b.do(t, "unexport", "checked/"+name, "--contexts", "west")
			}
			b.startController(t, b.east, "east")
		},
	},
	{
		name: "a drained member", says: []string{"drained east"},
		shell: "kubectl clusterset drain west --contexts east",
	},
	{
		name: "a cluster that drains itself", says: []string{"drained-itself west"},
		shell: "kubectl clusterset drain west --contexts west",
	},
	{
		name: "ranges that lack those of the pods", says: []string{"member-ranges east"},
		shell: "kubectl --context east -n clusterset-dns annotate secret member-west clusterset-dns.github.io/cidrs=192.0.2.0/24",
		after: "kubectl --context east -n clusterset-dns annotate secret member-west clusterset-dns.github.io/cidrs-",
	},
}

// cutOff cuts the way of the others to a cluster, until the test ends.
func (b *bed) cutOff(t *testing.T, c *cluster) {
	t.Helper()
	t.Cleanup(c.way.Reconnect)
	c.way.CutOff(link.Both)
}
