// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	osuser "os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
)

const membersPage = "operate/members.md"

// TestReverseTunnel follows docs/operate/members.md: two clusters read a third through a tunnel that is dialed from its
// network. The tunnel ends, and then its host is lost, while exports change.
func TestReverseTunnel(t *testing.T) {
	sshd, ssh := debian(t, "sshd", "openssh-server"), debian(t, "ssh", "openssh-client")
	keygen := debian(t, "ssh-keygen", "openssh-client")
	clusters, shell := privateSet(t, "west", "east", "north")
	west, readers := clusters[0], clusters[1:]

	// The bastion and the tunnel of the page, with the addresses of the test.
	folder := t.TempDir()
	me, err := osuser.Current()
	must(t, err)
	for _, key := range []string{"bastion-key", "west"} {
		run(t, "", keygen, "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(folder, key))
	}
	bastion, end, api := free(t), free(t).String(), strings.TrimPrefix(west.URL(), "https://")
	place := strings.NewReplacer("0.0.0.0:16443", end, "bastion.example.org:16443", end, "west-api.internal:6443", api,
		"-i west", "-i "+folder+"/west", "=bastion ", "="+folder+"/bastion ",
		"tunnel@bastion.example.org", me.Username+"@"+bastion.Addr().String(), "User tunnel", "User "+me.Username)
	written(t, folder, "authorized_keys", strings.ReplaceAll(place.Replace(documented(t, membersPage, "permitlisten")),
		"<content of west.pub>", strings.TrimSpace(read(t, folder+"/west.pub"))))
	written(t, folder, "bastion", fmt.Sprintf("[%s]:%d %s", bastion.Addr(), bastion.Port(), read(t, folder+"/bastion-key.pub")))
	configuration := written(t, folder, "sshd_config", fmt.Sprintf("ListenAddress %s\nHostKey %s\nAuthorizedKeysFile %s\n"+
		"PidFile none\nStrictModes no\nUsePAM no\n%s", bastion, folder+"/bastion-key", folder+"/authorized_keys",
		place.Replace(documented(t, membersPage, "Match User"))))
	if os.Geteuid() == 0 {
		must(t, os.MkdirAll("/run/sshd", 0o755)) // as the package's service does
	}
	background(t, folder, sshd, "-D", "-e", "-f", configuration)
	eventually(t, "the bastion", func(ctx context.Context) error { return dialed(ctx, bastion.String()) })
	flags := append([]string{"-F", "none", "-p", fmt.Sprint(bastion.Port())},
		strings.Fields(strings.ReplaceAll(place.Replace(documented(t, membersPage, "ssh -N")), "\\\n", ""))[1:]...)
	expectKeyRestricted(t, ssh, flags, end, free(t).String(), api)
	tunnel := background(t, folder, ssh, flags...)
	eventually(t, "the tunnel", func(ctx context.Context) error { return errors.Join(tunnel.Err(), dialed(ctx, end)) })

	publish(t, west, "10.2.0.1")
	shell(place.Replace(documented(t, membersPage, "--tls-server-name")))
	for i, reader := range readers {
		publish(t, reader, fmt.Sprintf("10.1.0.%d", i+1)) // used instead of demoted endpoints
	}
	read := func(what, state string, want ...string) {
		for _, reader := range readers {
			reads(t, what, reader, state, want...)
		}
	}
	read("joined", fresh, "10.2.0.1")
	if got := shell(showMembers); !strings.Contains(got, "https://"+end+"   kubernetes.default.svc") {
		t.Errorf("status does not show how west is read:\n%s", got)
	}

	must(t, tunnel.Stop(t.Context(), time.Minute))
	publish(t, west, "10.2.0.2", "10.2.0.3")
	read("without the tunnel", demoted, "10.2.0.1")
	tunnel = background(t, folder, ssh, flags...)
	read("with another tunnel", fresh, "10.2.0.2", "10.2.0.3")

	// The tunnel's host is lost. Another host starts the tunnel again and again until the port is free.
	must(t, tunnel.Freeze())
	publish(t, west, "10.2.0.4")
	read("without the host", demoted, "10.2.0.2", "10.2.0.3")
	next, tries := background(t, folder, ssh, flags...), 1
	eventually(t, "another host", func(ctx context.Context) error {
		if !next.Running() {
			must(t, next.Kill()) // it may have ended by itself
			next, tries = background(t, folder, ssh, flags...), tries+1
		}
		return seen(ctx, readers[0], fresh, "10.2.0.4")
	})
	t.Logf("the tunnel of another host began %d times", tries)
	read("with another host", fresh, "10.2.0.4")
}

// TestConnectProxy follows the same page: a cluster reads another through tinyproxy, which admits only the API server.
// The simulation covers members that become unreachable.
func TestConnectProxy(t *testing.T) {
	tinyproxy, curl := debian(t, "tinyproxy", "tinyproxy"), debian(t, "curl", "curl")
	clusters, shell := privateSet(t, "west", "east")
	west, east := clusters[0], clusters[1]
	folder, proxy, api := t.TempDir(), free(t), netip.MustParseAddrPort(strings.TrimPrefix(west.URL(), "https://"))
	written(t, folder, "filter", strings.ReplaceAll(documented(t, membersPage, "^west-api"), `west-api\.example\.org`,
		regexp.QuoteMeta(api.Addr().String())))
	configuration := written(t, folder, "tinyproxy.conf", strings.NewReplacer(
		"Port 8888", fmt.Sprintf("Port %d\nListen 127.0.0.1", proxy.Port()), "192.0.2.0/24", "127.0.0.1",
		"ConnectPort 6443", fmt.Sprint("ConnectPort ", api.Port()), "/etc/tinyproxy/filter", folder+"/filter",
	).Replace(documented(t, membersPage, "ConnectPort")))
	running := background(t, folder, tinyproxy, "-d", "-c", configuration)
	eventually(t, "the proxy", func(ctx context.Context) error { return errors.Join(running.Err(), dialed(ctx, proxy.String())) })
	for target, want := range map[string]string{
		api.String(): "200", fmt.Sprint("localhost:", api.Port()): "403", free(t).String(): "403",
	} {
		got, _ := try(t.Context(), t, "", curl, "--insecure", "--silent", "--output", os.DevNull, "--write-out", "%{http_connect}",
			"--proxy", proxy.String(), "https://"+target)
		if got != want {
			t.Errorf("CONNECT %s: got %s, want %s", target, got, want)
		}
	}

	publish(t, west, "10.2.0.1")
	shell(strings.ReplaceAll(documented(t, membersPage, "--proxy-url"), "proxy.example.org:8888", proxy.String()))
	reads(t, "joined", east, fresh, "10.2.0.1")
	if got := shell(showMembers); !strings.Contains(got, "http://"+proxy.String()) {
		t.Errorf("status does not show the proxy:\n%s", got)
	}
}

// debian returns the path of a program from a Debian package.
func debian(t *testing.T, name, from string) string {
	t.Helper()
	for _, folder := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/sbin") {
		if path, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
			return path // sshd requires an absolute path
		}
	}
	t.Fatalf("%s is missing: apt-get install --no-install-recommends %s", name, from)
	return ""
}

// showMembers shows how east reads its members.
const showMembers = "kubectl clusterset status --contexts east -o wide --controller $CONTROLLER_east"

// privateSet starts clusters with a controller each. The returned function is like that of shellOf.
func privateSet(t *testing.T, names ...string) ([]*controlplane.Cluster, func(string) string) {
	clusters := planes(t, names...)
	shell, controllers := shellOf(t, clusters...), ""
	for _, cluster := range clusters {
		controllers += "CONTROLLER_" + cluster.Name() + "=" + controllerOf(t, cluster, "--stale-after=20s").Address + "\n"
	}
	return clusters, func(commands string) string {
		return shell(controllers + commands)
	}
}

// planes starts control planes with the chart's objects.
func planes(t *testing.T, names ...string) []*controlplane.Cluster {
	options := make([]controlplane.Options, len(names))
	for i, name := range names {
		options[i] = controlplane.Options{Name: name}
	}
	clusters := controlplanetest.Start(t, options...)
	for _, cluster := range clusters {
		apply(t, cluster, template(t, "--set", "clusterId="+cluster.Name()+",namespace.create=true"))
	}
	return clusters
}

// shellOf returns a function that runs shell commands with a context for each cluster.
func shellOf(t *testing.T, clusters ...*controlplane.Cluster) func(string) string {
	bin, err := programs.Build(t.Context(), "cmd/kubectl-clusterset")
	must(t, err)
	var files []string
	for _, cluster := range clusters {
		files = append(files, written(t, t.TempDir(), "kubeconfig", read(t, cluster.AdminKubeconfig()))) // a copy to change
	}
	preamble := fmt.Sprintf("set -euo pipefail; export PATH=%s:%s:$PATH KUBECONFIG=%s\n", bin, filepath.Dir(kubectl(t)), strings.Join(files, ":"))
	return func(commands string) string {
		return run(t, preamble+commands, "bash", "-s")
	}
}

// background runs a program until the test ends.
func background(t *testing.T, folder, path string, args ...string) *process.Process {
	name := filepath.Base(path)
	return controlplanetest.Run(t, process.Spec{Name: name, Path: path, Args: args, LogFile: filepath.Join(folder, name+".log")})
}

// publish makes a cluster export a Service with these endpoints.
func publish(t *testing.T, cluster *controlplane.Cluster, addresses ...string) {
	must(t, cluster.Apply(t.Context(), []byte(`
{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {clusterIP: None, ports: [{name: http, port: 80}]}}
---
{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {name: web}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, metadata: {name: web-1,
 labels: {kubernetes.io/service-name: web}}, ports: [{name: http, port: 80, protocol: TCP}],
 endpoints: [{conditions: {ready: true}, addresses: [`+
		strings.Join(addresses, "]}, {conditions: {ready: true}, addresses: [")+`]}]}`)))
}

// States of a member, with the marks of its endpoints.
const (
	fresh   = ""
	demoted = "~" // stale, and another cluster has a ready endpoint
)

// seen returns an error unless a cluster has exactly these endpoints of west, in this state.
func seen(ctx context.Context, cluster *controlplane.Cluster, state string, want ...string) error {
	all, err := clusterset.Imported(ctx, cluster.Client(), "default", "web")
	if err != nil {
		return err
	}
	got := slices.DeleteFunc(slices.Clone(all), func(each string) bool { return !strings.HasPrefix(each, "west/") })
	var marked []string
	for _, address := range want {
		marked = append(marked, "west/"+address+state)
	}
	if !slices.Equal(got, marked) {
		return fmt.Errorf("got %v, want %v", all, marked)
	}
	lease, err := cluster.Client().CoordinationV1().Leases(system).Get(ctx, memberstate.LeasePrefix+"west", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if got := lease.Annotations[memberstate.StateAnnotation]; (got == "fresh") != (state == fresh) {
		return fmt.Errorf("the member is %s", got)
	}
	return nil
}

// reads waits until seen returns nil.
func reads(t *testing.T, what string, cluster *controlplane.Cluster, state string, want ...string) {
	took := eventually(t, what+", in "+cluster.Name(), func(ctx context.Context) error {
		return seen(ctx, cluster, state, want...)
	})
	t.Logf("%s, in %s: %v%s after %v", what, cluster.Name(), want, state, took.Round(time.Millisecond))
}

// expectKeyRestricted: with the tunnel's key, ssh cannot listen on another port, open a connection, or run a command.
func expectKeyRestricted(t *testing.T, ssh string, flags []string, end, other, target string) {
	t.Helper()
	login := slices.DeleteFunc(slices.Clone(flags), func(flag string) bool { return flag == "-N" })
	at := slices.Index(login, "-R")
	forward, login := login[at:at+2], slices.Delete(slices.Clone(login), at, at+2)
	for what, args := range map[string][]string{
		"another port": append([]string{"-N", "-R", strings.Replace(forward[1], end, other, 1)}, login...),
		"a connection": append([]string{"-W", target}, login...),
		"a command":    append(slices.Clone(login), "echo", "done"),
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		output, err := try(ctx, t, "", ssh, args...)
		if err == nil || ctx.Err() != nil || output != "" {
			t.Errorf("%s: got %q, %v", what, output, err)
		}
		cancel()
	}
}

// dialed returns an error unless something listens.
func dialed(ctx context.Context, address string) error {
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err == nil {
		connection.Close()
	}
	return err
}

func free(t *testing.T) netip.AddrPort {
	address, err := process.FreePort()
	must(t, err)
	return address
}

func written(t *testing.T, folder, name, text string) string {
	path := filepath.Join(folder, name)
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
