// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/network"
)

// pod is a Pod of the API, and a network namespace that has its addresses.
type pod struct {
	*network.Namespace
	cluster         *cluster
	namespace, name string
	addresses       []netip.Addr
	resolvConf      string
	runs            int // programs that were started in it
	server          *process.Process
}

type podSpec struct {
	namespace, name string
	labels          map[string]string
	// node is the index of its node in the cluster.
	node int
	// subdomain makes its name the hostname of its endpoint.
	subdomain string
	// serve is what its server listens to, such as "tcp:8080". Without it nothing runs in the pod at first.
	serve []string
}

// restricted is what the Pod Security Standard of that name asks for, which the controller's namespace enforces.
var restricted = corev1.SecurityContext{
	AllowPrivilegeEscalation: ptr.To(false),
	Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	RunAsNonRoot:             ptr.To(true),
	SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
}

// pod creates a Pod, waits for its addresses, and makes the namespace that has them. Once it returns, what it serves is
// served.
func (c *cluster) pod(t testing.TB, spec podSpec) *pod {
	node := c.nodes[spec.node]
	object := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: spec.namespace, Name: spec.name, Labels: spec.labels},
		Spec: corev1.PodSpec{
			NodeName:   node.name,
			Containers: []corev1.Container{{Name: "pod", Image: "pod", SecurityContext: &restricted}},
			Subdomain:  spec.subdomain,
		},
	}
	if spec.subdomain != "" {
		object.Spec.Hostname = spec.name
	}
	pods := c.CoreV1().Pods(spec.namespace)
	eventually(t, "create pod "+spec.name, func(ctx context.Context) error {
		_, err := pods.Create(ctx, object, metav1.CreateOptions{})
		return err
	})
	p := &pod{cluster: c, namespace: spec.namespace, name: spec.name}
	eventually(t, "addresses of pod "+spec.name, func(ctx context.Context) error {
		got, err := pods.Get(ctx, spec.name, metav1.GetOptions{})
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
	p.resolvConf = c.writeFile(t, "resolv.conf-"+spec.namespace, resolvConf(spec.namespace, c.dns))
	if len(spec.serve) > 0 {
		p.serve(t, spec.serve...)
	}
	return p
}

// resolvConf is what a kubelet gives to a pod whose dnsPolicy is ClusterFirst.
func resolvConf(namespace, server string) string {
	return fmt.Sprintf("search %s.svc.cluster.local svc.cluster.local cluster.local\nnameserver %s\noptions ndots:5\n",
		namespace, server)
}

// identity is how its server answers.
func (p *pod) identity() string { return p.cluster.Name() + "/" + p.name }

// spec says how a program is run in the pod.
func (p *pod) spec(program string, args ...string) process.Spec {
	p.runs++
	return p.In(p.resolvConf, process.Spec{
		Name:    fmt.Sprintf("%s in %s", filepath.Base(program), p.identity()),
		Path:    program,
		Args:    args,
		Dir:     p.cluster.Directory(),
		LogFile: filepath.Join(p.cluster.Directory(), fmt.Sprintf("%s-%s-%d.log", p.namespace, p.name, p.runs)),
	})
}

// run starts a program in the pod, which runs until the test ends.
func (p *pod) run(t testing.TB, program string, args ...string) *process.Process {
	return start(t, p.spec(program, args...))
}

// replica is a program in a pod that is started again a second after it ended, as a kubelet would.
type replica struct {
	*pod
	spec process.Spec
	end  func() error // ends it until start
}

// supervise keeps a program running until the test ends.
func (p *pod) supervise(t testing.TB, spec process.Spec) *replica {
	r := &replica{pod: p, spec: spec}
	r.start()
	t.Cleanup(func() {
		must(t, r.end())
		if log, err := os.ReadFile(spec.LogFile); t.Failed() {
			t.Logf("the log of %s ends: %v\n%s", spec.Name, err, log[max(0, len(log)-8192):])
		}
	})
	return r
}

func (r *replica) start() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	spec := r.spec
	go func() { ended <- loop(ctx, spec) }()
	r.end = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
}

func loop(ctx context.Context, spec process.Spec) error {
	for {
		p, err := process.Start(spec)
		if err != nil {
			return err
		}
		select {
		case <-p.Done():
		case <-ctx.Done():
			return p.Stop(context.WithoutCancel(ctx), 20*time.Second)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil
		}
	}
}

// serve starts the pod's server and returns once it listens.
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

// command runs a program in the pod to its end.
func (p *pod) command(ctx context.Context, program string, args ...string) (string, error) {
	line := p.Command(p.resolvConf, program, args...)
	command := exec.Command(line[0], line[1:]...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := process.StartTied(command); err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { _ = command.Process.Kill() })
	defer stop()
	if err := command.Wait(); err != nil {
		return stdout.String(), fmt.Errorf("%s %v in %s: %w: %s", filepath.Base(program), args, p.identity(), err,
			stderr.String())
	}
	return stdout.String(), nil
}

// setReady makes the pod ready or not, as a readiness probe would, and returns when.
func (p *pod) setReady(t testing.TB, ready bool) time.Time {
	must(t, p.cluster.SetPodReady(t.Context(), p.namespace, p.name, ready))
	return time.Now()
}
