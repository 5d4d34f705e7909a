// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const asProgram = "KUBECTL_CLUSTERSET_TEST_ARGS"

// TestMain runs the program instead if the environment has its arguments.
func TestMain(m *testing.M) {
	if args := os.Getenv(asProgram); args != "" {
		os.Args = append(os.Args[:1], strings.Fields(args)...)
		os.Exit(Main(""))
	}
	os.Exit(m.Run())
}

// newHung starts a server that completes TLS, but does not answer in the test. The channel has a value for each request.
func newHung(t *testing.T) (url string, asked <-chan string) {
	t.Helper()
	end, requests := make(chan struct{}), make(chan string, 100)
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		requests <- r.URL.Path
		<-end
	}))
	t.Cleanup(func() {
		close(end)
		server.Close()
	})
	return server.URL, requests
}

// TestSignalsEndCommands that wait for an API server which never answers.
func TestSignalsEndCommands(t *testing.T) {
	url, asked := newHung(t)
	kubeconfig := writeKubeconfig(t, url)
	for i, line := range []string{
		"status", "status --wait", "explain shop/db", "check", "sysdump -o " + filepath.Join(t.TempDir(), "dump.tar.gz"),
		"leave west", "export shop/db", "coredns enable",
	} {
		command := exec.CommandContext(t.Context(), os.Args[0])
		command.Env = append(os.Environ(), asProgram+"="+line+" --kubeconfig "+kubeconfig)
		var out bytes.Buffer
		command.Stdout, command.Stderr = &out, &out
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		<-asked
		signaled := time.Now()
		if err := command.Process.Signal([]os.Signal{os.Interrupt, syscall.SIGTERM}[i%2]); err != nil {
			t.Fatal(err)
		}
		err := command.Wait()
		// A second on a machine with other work; requests end after ten anyway.
		if took := time.Since(signaled); took > 5*time.Second {
			t.Errorf("%s ended after %s: %v\n%s", line, took, err, out.String())
		}
		for len(asked) > 0 {
			<-asked
		}
	}
}

// TestSickClusterHoldsUpNoOther: its requests time out, and the other clusters are shown, even if a wait ends before.
func TestSickClusterHoldsUpNoOther(t *testing.T) {
	url, _ := newHung(t)
	address := newController(t, imports("Ready", "shop/db"))
	for line, want := range map[string]string{
		"status --request-timeout 100ms": "shop/db", "check --dns east=127.0.0.1:1 --request-timeout 100ms": "api-reachable",
		"explain shop/db --dns east=127.0.0.1:1 --request-timeout 100ms": "DNS was not queried: query 127.0.0.1:1 for db.shop.svc",
		"status --wait --timeout 1s":                                     "shop/db",
	} {
		out, _, err := invoke(t, url, append(strings.Fields(line), "--contexts", "east,west", "--controller", "east="+address)...)
		if err == nil || !strings.Contains(out, want) || strings.Contains(line, "--wait") && !strings.Contains(err.Error(), "west: ") {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
	}
}

// TestRequestsOfDiagnosticCommandsTimeOut unless a flag says otherwise.
func TestRequestsOfDiagnosticCommandsTimeOut(t *testing.T) {
	kubeconfig := writeKubeconfig(t, newAPI(t, nil).URL)
	for line, want := range map[string]string{
		"status": "10s", "status --request-timeout 1m": "1m", "status --request-timeout 0": "0", "unexport shop/db": "0",
		"test connectivity --contexts east,west": "10s",
	} {
		o := &options{Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}}
		_ = execute(t.Context(), o, append(strings.Fields(line), "--kubeconfig", kubeconfig))
		if o.overrides.Timeout != want {
			t.Errorf("%s: got %q, want %q", line, o.overrides.Timeout, want)
		}
	}
}

// TestForbiddenIsNotUnreachable: the output names the missing right, and the Role that grants it.
func TestForbiddenIsNotUnreachable(t *testing.T) {
	kubeconfig := writeKubeconfig(t, newAPI(t, map[string]string{"GET /api/v1/namespaces/clusterset-dns/pods": ""}).URL)
	for line, exit := range map[string]int{"status": 1, "status -o json": 1, "explain shop/db": 1, "check": 3} {
		command := exec.CommandContext(t.Context(), os.Args[0])
		command.Env = append(os.Environ(), asProgram+"="+line+" --kubeconfig "+kubeconfig)
		out, err := command.CombinedOutput()
		if command.ProcessState.ExitCode() != exit {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		for said, want := range map[string]bool{
			"Role clusterset-viewer of namespace clusterset-dns": true, "unreachable": false, "not answer": false,
			"Have an administrator bind": line == "check", "Start clusterset-controller": false,
		} {
			if bytes.Contains(out, []byte(said)) != want {
				t.Errorf("%s: %q is not %v in\n%s", line, said, want, out)
			}
		}
	}
}

// TestLongTextsOfControllersAreCut: a terminal shows 1 KiB of an error.
func TestLongTextsOfControllersAreCut(t *testing.T) {
	long := imports("Ready", "shop/db")
	long.Controller, long.Imports[0].Clusters = strings.Repeat("y", 1<<20), []string{strings.Repeat("z", 1<<20)}
	for line, controller := range map[string]string{
		"status": newController(t, long),
		"check": serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write(bytes.Repeat([]byte("x"), 1<<20))
		}),
	} {
		out, _, _ := invoke(t, newAPI(t, nil).URL, append(strings.Fields(line), "--controller", "east="+controller)...)
		if len(out) > 4<<10 || !strings.Contains(out, "...") {
			t.Errorf("%s: %d bytes", line, len(out))
		}
	}
}
