// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/network"
	"github.com/clusterset-dns/clusterset-dns/test/kubelet"
)

// pod is a Pod in the API, and a network namespace with its addresses.
type pod struct {
	*network.Namespace
	cluster         *cluster
	namespace, name string
	addresses       []netip.Addr
	resolvConf      string
	runs            int // number of programs that were started in it
	server          *process.Process
}

type podSpec struct {
	namespace, name, app string // app is the value of the label app
	// node is the index of its node in the cluster.
	node int
	// subdomain makes the pod's name the hostname of its endpoints, if it is the name of the Service.
	subdomain string
	// serve has the listeners of its server, such as "tcp:8080". If it is empty, nothing runs in the pod at first.
	serve []string
}

// pod creates a Pod, waits for its addresses, creates the namespace with these addresses, and waits until its server
// listens.
func (c *cluster) pod(t testing.TB, spec podSpec) *pod {
	node := c.nodes[spec.node]
	// The settings conform to the Pod Security Standard restricted, which the controller's namespace enforces.
	c.apply(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {namespace: %s, name: %s, labels: {app: %q}}, spec: {
  nodeName: %s, hostname: %[2]s, subdomain: %[5]q, containers: [{name: pod, image: pod, securityContext: {
    allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}}]}}`,
		spec.namespace, spec.name, spec.app, node.name, spec.subdomain))
	p := &pod{cluster: c, namespace: spec.namespace, name: spec.name}
	eventually(t, "addresses of pod "+spec.name, func(ctx context.Context) error {
		got, err := c.CoreV1().Pods(spec.namespace).Get(ctx, spec.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		p.addresses = p.addresses[:0]
		for _, ip := range got.Status.PodIPs {
			p.addresses = append(p.addresses, netip.MustParseAddr(ip.IP))
		}
		if len(p.addresses) != len(c.Options().PodCIDRs) {
			return fmt.Errorf("it has the addresses %v", p.addresses)
		}
		return nil
	})
	p.Namespace = c.attach(t, node.Namespace, p.addresses)
	p.resolvConf = c.writeFile(t, "resolv.conf-"+spec.namespace, kubelet.ResolvConf(spec.namespace, c.dns))
	if len(spec.serve) > 0 {
		p.serve(t, spec.serve...)
	}
	return p
}

// identity returns the answer of its server.
func (p *pod) identity() string { return p.cluster.Name() + "/" + p.name }

// run starts a program in the pod. It runs until the test ends.
func (p *pod) run(t testing.TB, program string, args ...string) *process.Process {
	p.runs++
	return controlplanetest.Run(t, p.In(p.resolvConf, process.Spec{
		Name:    fmt.Sprintf("%s in %s", filepath.Base(program), p.identity()),
		Path:    program,
		Args:    args,
		Dir:     p.cluster.Directory(),
		LogFile: filepath.Join(p.cluster.Directory(), fmt.Sprintf("%s-%s-%s-%d.log", p.namespace, p.name, p.addresses[0], p.runs)),
	}))
}

// serve starts the pod's server and waits until it listens.
func (p *pod) serve(t testing.TB, listeners ...string) {
	p.server = p.run(t, p.cluster.bed.program("pod"),
		append([]string{"serve", "-identity", p.identity()}, listeners...)...)
	eventually(t, p.identity()+" to serve", func(context.Context) error {
		if log := p.server.LogTail(4096); !strings.Contains(log, "serving") {
			return fmt.Errorf("its log is %q", log)
		}
		return nil
	})
}

// command runs a program in the pod, and returns its output.
func (p *pod) command(ctx context.Context, program string, args ...string) (string, error) {
	line := p.Command(p.resolvConf, program, args...)
	return process.Output(exec.CommandContext(ctx, line[0], line[1:]...))
}

// setReady makes the pod ready or unready, as a readiness probe would, and returns the time of the change.
func (p *pod) setReady(t testing.TB, ready bool) time.Time {
	must(t, p.cluster.SetPodReady(t.Context(), p.namespace, p.name, ready))
	return time.Now()
}
