// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/link"
)

// credentialOf is the credential by which a cluster reads another.
func credentialOf(reader, member string) string {
	return "kubectl --context " + reader + " -n clusterset-dns get secret member-" + member +
		" -o jsonpath={.data.kubeconfig} | base64 -d"
}

// replaced has a cluster read another by what a command makes.
func replaced(reader, member, command string) string {
	return "C=$(" + command + ` | base64 -w0)
kubectl --context ` + reader + ` -n clusterset-dns patch secret member-` + member +
		` -p '{"data":{"kubeconfig":"'$C'"}}'`
}

// copied is a second Secret of what a cluster has of another, changed by sed.
func copied(reader, member, change string) string {
	return "kubectl --context " + reader + " -n clusterset-dns get secret member-" + member +
		" -o yaml | sed '/uid:/d; " + change + "' | kubectl --context " + reader + " create -f -"
}

// token is what says of itself when it ends; no API server takes it.
func token(issued, expires time.Duration) string {
	claims := fmt.Sprintf(`{"iat":%d,"exp":%d}`, time.Now().Add(issued).Unix(), time.Now().Add(expires).Unix())
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".e30"
}

// cut is the round of a cluster that is cut off, which tests play of which that is a part.
const cut = "ways"

var memberFaults = []fault{
	{
		name: "a cluster that is not joined", round: "credentials, one", says: []string{"joined east"},
		shell: "kubectl --context east -n clusterset-dns delete secret member-west",
	},
	{
		name: "a credential that is none", round: "credentials, one", says: []string{"credential-usable north"},
		shell: `kubectl --context north -n clusterset-dns patch secret member-west -p '{"data":{"kubeconfig":"bm8="}}'`,
	},
	{
		name: "ranges that are none", round: "Secrets", says: []string{"credential-usable east"},
		shell: "kubectl --context east -n clusterset-dns annotate --overwrite secret member-west clusterset-dns.github.io/cidrs=everywhere",
		fill:  map[string]string{"<ranges of its pods>": "0.0.0.0/0,::/0"},
	},
	{
		name: "no ranges", round: "credentials, one", says: []string{"member-confined west"},
		shell: "kubectl --context west -n clusterset-dns annotate secret member-north clusterset-dns.github.io/cidrs-",
		fill:  map[string]string{"<ranges of its pods>": "0.0.0.0/0,::/0"},
	},
	{
		name: "a rank that is none", round: "Secrets", says: []string{"ranks west"},
		shell: "kubectl --context west annotate namespace clusterset-dns clusterset-dns.github.io/rank=high",
		fill:  map[string]string{"<integer from -1000 to 1000>": "0"},
		after: "kubectl --context west annotate namespace clusterset-dns clusterset-dns.github.io/rank-",
	},
	{
		name: "an id that is none", round: "Secrets", says: []string{"credential-usable north"},
		also:  []string{"joined north"},
		shell: "kubectl --context north -n clusterset-dns label secret member-east clusterset-dns.github.io/cluster=No_Id --overwrite",
		fill:  map[string]string{"<id of the cluster whose API server it names>": "east"},
	},
	{
		name: "a credential of the cluster itself", round: "Secrets", says: []string{"credential-usable west"},
		shell: copied("west", "east", "s/name: member-east/name: itself/; s#/cluster: east#/cluster: west#"),
	},
	{
		name: "a credential that ends soon", round: "credentials, one", says: []string{"credential-lasts east"},
		also: []string{"member-reachable east", "member-fresh east"},
		do: func(t *testing.T, b *bed) {
			b.shell(t,
				replaced("east", "north",
					credentialOf("east", "north")+" | sed 's/token: .*/token: "+token(-300*24*time.Hour, 48*time.Hour)+
						"/'"))
		},
	},
	{
		name: "a second credential", round: "Secrets", says: []string{"credential-single north"},
		shell: copied("north", "west", "s/name: member-west/name: second-west/"),
	},
	{
		name: "the credential of another cluster", round: "credentials, two", says: []string{"member-identity north"},
		also:  []string{"member-quarantined north", "member-fresh north"},
		hand:  map[string]func(*testing.T, *bed){"--server": func(t *testing.T, b *bed) { b.rejoin(t, b.north, b.east) }},
		shell: replaced("north", "east", credentialOf("north", "west")),
	},
	{
		name: "a wrong address", round: "credentials, two", says: []string{"member-reachable north"},
		also:  []string{"member-fresh north"},
		hand:  map[string]func(*testing.T, *bed){"--server": func(t *testing.T, b *bed) { b.rejoin(t, b.north, b.west) }},
		shell: replaced("north", "west", credentialOf("north", "west")+" | sed 's#https://.*#https://127.0.0.1:1#'"),
	},
	{
		name: "a way that is cut", round: cut,
		says: []string{"member-reachable east", "member-reachable north"},
		also: []string{"member-fresh east", "member-fresh north"},
		do:   func(t *testing.T, b *bed) { b.cutOff(t, b.west) },
		hand: map[string]func(*testing.T, *bed){
			"Make sure that ": func(_ *testing.T, b *bed) { b.west.way.Reconnect() },
		},
	},
	{
		name: "an id that is another", round: "Secrets", says: []string{"member-identity west"},
		also:  []string{"joined west"},
		shell: "kubectl --context west -n clusterset-dns label secret member-north clusterset-dns.github.io/cluster=nobody --overwrite",
	},
	{
		name: "a member that lost most of its exports", round: "losses", says: []string{"member-quarantined east"},
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
		name: "a drained member", round: "Secrets", says: []string{"drained east"},
		shell: "kubectl clusterset drain north --contexts east",
	},
	{
		name: "a cluster that drains itself", round: "itself",
		says:  []string{"drained-itself west", "drained east", "drained north"},
		shell: "kubectl clusterset drain west --contexts west",
	},
	{
		name: "a rank in one cluster", round: "itself", says: []string{"ranks-agree west", "ranks-agree north"},
		shell: "kubectl --context east -n clusterset-dns annotate secret member-north clusterset-dns.github.io/rank=5",
		hand: map[string]func(*testing.T, *bed){"Set the annotation": func(t *testing.T, b *bed) {
			b.shell(t, "kubectl --context east -n clusterset-dns annotate secret member-north clusterset-dns.github.io/rank-")
		}},
	},
}

// rejoin joins two clusters by the address at which the one reads the other.
func (b *bed) rejoin(t *testing.T, reader, source *cluster) {
	t.Helper()
	b.do(t, "join", reader.Name(), source.Name(), "--server", source.Name()+"="+source.way.URL())
}

// cutOff cuts the way of the others to a cluster, until the test ends.
func (b *bed) cutOff(t *testing.T, c *cluster) {
	t.Helper()
	t.Cleanup(c.way.Reconnect)
	c.way.CutOff(link.Both)
}
