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

// newHung completes TLS, and answers nothing until the test ends. The channel has a value for each request.
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

// diagnostic are the commands that must answer while a cluster is sick.
func diagnostic(t *testing.T) []string {
	t.Helper()
	return []string{
		"status", "status --wait", "explain shop/db", "check",
		"sysdump -o " + filepath.Join(t.TempDir(), "dump.tar.gz"),
	}
}

// TestSignalsEndCommands that wait for an API server which never answers.
func TestSignalsEndCommands(t *testing.T) {
	url, asked := newHung(t)
	kubeconfig := writeKubeconfig(t, url)
	for i, line := range append(diagnostic(t), "leave west", "export db", "coredns enable") {
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

// TestSickClusterHoldsUpNoOther: its requests time out, and the other clusters are shown.
func TestSickClusterHoldsUpNoOther(t *testing.T) {
	url, _ := newHung(t)
	is := imports("Ready", "shop/db")
	for line, want := range map[string]string{
		"status": "shop/db", "explain shop/db --dns east=127.0.0.1:1": "DNS was not queried: query 127.0.0.1:1 for db.shop.svc",
		"check --dns east=127.0.0.1:1": "api-reachable",
	} {
		out, _, err := invoke(t, url, append(strings.Fields(line), "--contexts", "east,west", "--controller",
			"east="+newController(t, is), "--request-timeout", "100ms")...)
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
	}
}

// TestWaitThatEndsShowsWhatIsKnown, although a sick cluster has not answered once.
func TestWaitThatEndsShowsWhatIsKnown(t *testing.T) {
	url, _ := newHung(t)
	out, _, err := invoke(t, url, "status", "--wait", "--timeout", "1s", "--contexts", "east,west", "--controller",
		"east="+newController(t, imports("Ready", "shop/db")))
	if exitStatus(err) != exitFailed || !strings.Contains(err.Error(), "west: ") || !strings.Contains(out, "shop/db") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestRequestsOfDiagnosticCommandsTimeOut unless a flag says otherwise.
func TestRequestsOfDiagnosticCommandsTimeOut(t *testing.T) {
	controller, server := newController(t, imports("Ready")), newAPI(t, nil, nil)
	for _, line := range diagnostic(t) {
		if strings.Contains(line, "--wait") {
			continue
		}
		for flags, want := range map[string]string{"": "10s", " --request-timeout 1m": "1m", " --request-timeout 0": "0"} {
			o := &options{Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}}
			root := newCommand(o)
			root.SetArgs(strings.Fields(line + flags + " --controller " + controller + " --kubeconfig " +
				writeKubeconfig(t, server.URL)))
			_ = root.ExecuteContext(t.Context())
			if o.overrides.Timeout != want {
				t.Errorf("%s%s: got %q, want %q", line, flags, o.overrides.Timeout, want)
			}
		}
	}
}

// TestForbiddenIsNotUnreachable: who lacks a right learns which, and what grants it.
func TestForbiddenIsNotUnreachable(t *testing.T) {
	const pods = "GET /api/v1/namespaces/clusterset-dns/pods"
	server := newAPI(t, nil, map[string]int{pods: http.StatusForbidden})
	for _, line := range []string{"status", "status -o json", "explain shop/db"} {
		out, _, err := invoke(t, server.URL, strings.Fields(line)...)
		if exitStatus(err) != exitFailed {
			t.Errorf("%s: %v", line, err)
		}
		if said := out + err.Error(); !strings.Contains(said, "Role clusterset-viewer of namespace clusterset-dns") ||
			strings.Contains(said, "unreachable") || strings.Contains(said, "not answer") {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
	}
	out, _, err := invoke(t, server.URL, "check")
	if exitStatus(err) != exitWrong || !strings.Contains(out, "Have an administrator bind the Role clusterset-viewer") || strings.Contains(out, "Start clusterset-controller") {
		t.Errorf("check:\n%s", out)
	}
}

// TestLongTextsOfControllersAreCut: of an error, a terminal shows 1 KiB.
func TestLongTextsOfControllersAreCut(t *testing.T) {
	long := imports("Ready", "shop/db")
	long.Controller, long.Imports[0].Clusters = strings.Repeat("y", 1<<20), []string{strings.Repeat("z", 1<<20)}
	for line, controller := range map[string]string{
		"status": newController(t, long),
		"status -o wide": serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write(bytes.Repeat([]byte("x"), 1<<20))
		}),
	} {
		out, _, _ := invoke(t, newAPI(t, nil, nil).URL, append(strings.Fields(line), "--controller", controller)...)
		if len(out) > 4<<10 || !strings.Contains(out, "...") {
			t.Errorf("%s: %d bytes", line, len(out))
		}
	}
}
