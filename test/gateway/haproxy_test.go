// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// haproxy is a running haproxy. Each change starts a new process, because a reload signal during a reload is lost.
type haproxy struct {
	*process.Process
	file string
}

// serve makes haproxy serve rules on port 80 of its address, and answer other requests with 404.
func (h *haproxy) serve(rules []rule) error {
	configured := configuration(rules)
	if before, err := os.ReadFile(h.file); err == nil && bytes.Equal(before, configured) {
		return nil
	}
	if err := os.WriteFile(h.file, configured, 0o600); err != nil {
		return err
	}
	args := []string{"-db", "-f", h.file}
	if h.Process != nil {
		args = append(args, "-sf", strconv.Itoa(h.PID()))
	}
	started, err := process.Start(process.Spec{Name: "haproxy", Path: "haproxy", Args: args, LogFile: h.file + ".log"})
	if err == nil {
		h.Process = started
	}
	return err
}

// configuration has a backend for each backend of the rules. A random number per request selects one of its rule's backends.
func configuration(rules []rule) []byte {
	var frontend, backends bytes.Buffer
	fmt.Fprintf(&frontend, `global
    hard-stop-after 1s
defaults
    mode http
    timeout connect 2s
    timeout client 10s
    timeout server 10s
frontend gateway
    bind %s:80
`, proxyAddress)
	for r, rule := range rules {
		total, sum := int32(0), int32(0)
		for _, each := range rule.backends {
			total += each.weight
		}
		match := fmt.Sprintf("{ path_reg ^%s(/|$) }", rule.prefix)
		fmt.Fprintf(&frontend, "    http-request set-var(txn.draw) rand(%d) if %s\n", total, match)
		for b, each := range rule.backends {
			sum += each.weight
			fmt.Fprintf(&frontend, "    use_backend %d-%d if %s { var(txn.draw) -m int lt %d }\n", r, b, match, sum)
			fmt.Fprintf(&backends, "backend %d-%d\n", r, b)
			if each.invalid {
				fmt.Fprintln(&backends, "    http-request return status 500")
			}
			for e, endpoint := range each.endpoints {
				fmt.Fprintf(&backends, "    server s%d %s\n", e, endpoint)
			}
		}
	}
	fmt.Fprintln(&frontend, "    default_backend none\nbackend none\n    http-request return status 404")
	return append(frontend.Bytes(), backends.Bytes()...)
}
