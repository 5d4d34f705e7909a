// SPDX-License-Identifier: Apache-2.0

// Package kind runs the script of deploy/kind against programs that only record how they are called.
package kind

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const script = "../../deploy/kind/kind.sh"

// fake records its name, its arguments and its standard input, and answers what the script reads.
const fake = `#!/bin/sh
name=$(basename "$0")
echo "$name $*" >>"$RECORD"
case "$name $*" in
  "kind create"*) cat >>"$RECORD" ;;
  "kind get nodes --name east") printf 'east-control-plane\neast-worker\n' ;;
  "kind get nodes --name west") echo west-control-plane ;;
  "kubectl --context kind-east get nodes"*) printf '10.1.0.0/24 172.18.0.2\n10.1.1.0/24 172.18.0.3\n' ;;
  "kubectl --context kind-west get nodes"*) echo '10.2.0.0/24 172.18.0.4' ;;
  "docker"*) cat >/dev/null ;;
esac
`

// calls runs the script, and returns the lines that the programs recorded.
func calls(t *testing.T, argument string, environment ...string) []string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"kind", "docker", "kubectl", "helm"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(fake), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	record := filepath.Join(folder, "record")
	command := exec.CommandContext(t.Context(), script, argument)
	command.Env = append([]string{"PATH=" + folder + ":" + os.Getenv("PATH"), "RECORD=" + record, "TMPDIR=" + folder},
		environment...)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	text, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// hold looks for the lines, in this order.
func hold(t *testing.T, got []string, want ...string) {
	t.Helper()
	for rest := got; len(want) > 0; want = want[1:] {
		at := slices.Index(rest, want[0])
		if at < 0 {
			t.Fatalf("%q is missing, or comes too early, in\n%s", want[0], strings.Join(got, "\n"))
		}
		rest = rest[at+1:]
	}
}

func TestUp(t *testing.T) {
	hold(t, calls(t, "up"),
		"kind create cluster --name east --wait 2m --config -",
		"networking: {podSubnet: 10.1.0.0/16, serviceSubnet: 10.101.0.0/16}",
		"kind create cluster --name west --wait 2m --config -",
		"networking: {podSubnet: 10.2.0.0/16, serviceSubnet: 10.102.0.0/16}",
		"docker exec east-control-plane ip route replace 10.2.0.0/24 via 172.18.0.4",
		"docker exec east-worker ip route replace 10.2.0.0/24 via 172.18.0.4",
		"docker exec west-control-plane ip route replace 10.1.0.0/24 via 172.18.0.2",
		"docker exec west-control-plane ip route replace 10.1.1.0/24 via 172.18.0.3",
		"helm install clusterset-dns ../../deploy/kind/../chart --kube-context kind-west --namespace clusterset-dns "+
			"--create-namespace --set clusterId=west --wait",
		"kubectl clusterset join kind-east kind-west --server kind-east=https://east-control-plane:6443 --server "+
			"kind-west=https://west-control-plane:6443",
		"kubectl clusterset coredns enable --context kind-east",
		"kubectl --context kind-west apply -f ../../deploy/kind/demo.yaml",
		"kubectl clusterset export demo/web --contexts kind-east,kind-west")
}

// TestUpWithImages takes images and chart from a directory, as in a release.
func TestUpWithImages(t *testing.T) {
	images := t.TempDir()
	for _, name := range []string{"clusterset-controller", "coredns-slim"} {
		if err := os.Mkdir(filepath.Join(images, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	got := calls(t, "up", "IMAGES="+images, "VERSION=1.2.3", "CHART=a.tgz")
	hold(t, got,
		"helm install clusterset-dns a.tgz --kube-context kind-east --namespace clusterset-dns --create-namespace --set "+
			"clusterId=east --set controller.image.tag=1.2.3,coredns.image.tag=1.2.3 --wait",
		"kubectl clusterset coredns enable --context kind-east")
	loaded := slices.DeleteFunc(slices.Clone(got), func(line string) bool {
		return !strings.HasPrefix(line, "kind load image-archive ")
	})
	if len(loaded) != 4 || !strings.HasSuffix(loaded[3], "/coredns-slim.tar --name west") {
		t.Errorf("loaded %q", loaded)
	}
}

func TestDown(t *testing.T) {
	hold(t, calls(t, "down"), "kind delete cluster --name east", "kind delete cluster --name west")
}
