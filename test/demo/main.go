// SPDX-License-Identifier: Apache-2.0

// Command demo joins three clusters, and has names of one answered in the others. It prints the commands that one would type
// and what came back, and ends with an error if an answer is wrong. It runs on models of two API servers, in its own
// process: nothing of Kubernetes but its client libraries is compiled for it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
	"github.com/clusterset-dns/clusterset-dns/test/demo/plane"
)

func main() {
	beProgram()
	flags := flag.NewFlagSet("demo", flag.ExitOnError)
	hold := flags.Bool("hold", false, "keep everything running after the story, until Ctrl-C")
	_ = flags.Parse(os.Args[1:]) // it exits on an error
	if err := process.TieToParent(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *hold)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
		os.Exit(1)
	}
}

// run tells the story and leaves nothing behind.
func run(ctx context.Context, hold bool) (err error) {
	began := time.Now()
	n := narrator{os.Stdout}
	n.chapter("three clusters, joined")
	n.say("real:  clusterset-controller, CoreDNS, kubectl-clusterset, each a process; TLS, tokens and RBAC between them")
	n.say("model: the Kubernetes API, held to kube-apiserver by contract tests, and its controllers; pods run nothing")
	planes, stop, err := plane.Start(ctx, "east", "west", "north")
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := stop(); err == nil {
			err = stopErr
		}
	}()
	clusters := make([]*cluster, len(planes))
	var kubeconfigs []string
	for i, each := range planes {
		if clusters[i], err = newCluster(each); err != nil {
			return err
		}
		kubeconfigs = append(kubeconfigs, clusters[i].kubeconfig)
		n.say("%s: %s", each.Name(), each.Config().Host)
	}
	n.say("started in %.1f s", time.Since(began).Seconds())
	k := kubectl{
		n, filepath.Join(planes[0].Directory(), "demo.kubeconfig"), filepath.Join(planes[0].Directory(), "bin"),
	}
	merged, err := (&clientcmd.ClientConfigLoadingRules{Precedence: kubeconfigs}).Load()
	if err == nil {
		err = clientcmd.WriteToFile(*merged, k.config)
	}
	if err == nil {
		err = link(k.bin)
	}
	if err != nil {
		return err
	}
	s := &story{narrator: n, kubectl: k, east: clusters[0], west: clusters[1], north: clusters[2]}
	defer func() {
		for _, c := range clusters {
			c.stop(context.WithoutCancel(ctx))
		}
	}()
	if err := s.join(ctx); err != nil {
		return err
	}
	if err := s.tell(ctx); err != nil {
		return err
	}
	n.chapter("all answers were right, in %.1f s", time.Since(began).Seconds())
	if hold {
		return s.hold(ctx)
	}
	return nil
}

// hold exports everything again and waits for Ctrl-C.
func (s *story) hold(ctx context.Context) error {
	s.chapter("everything goes on running until Ctrl-C; both services are exported again")
	for _, manifest := range []string{"web.yaml", "db.yaml"} {
		if err := s.apply(ctx, manifest); err != nil {
			return err
		}
	}
	for _, c := range s.clusters() {
		ip, err := c.importIP(ctx)
		if err != nil {
			return err
		}
		if _, err := s.await(ctx, lookup{c.dns, webName, "A", ip},
			time.Now()); err != nil {
			return err
		}
	}
	for _, c := range s.clusters() {
		s.say("%s: DNS at %s, the controller's metrics at http://%s/metrics, logs in %s", c.name, c.dns, c.health,
			c.plane.Directory())
	}
	host, port, _ := strings.Cut(s.west.dns, ":")
	controllers := " --controller east=" + s.east.health + " --controller west=" + s.west.health // which are no pods
	s.chapter("in another terminal")
	for _, line := range []string{
		"export KUBECONFIG=" + s.kubectl.config + " PATH=" + s.kubectl.bin + ":$PATH",
		"kubectl-clusterset status --contexts east,west" + controllers,
		"kubectl-clusterset explain demo/web --contexts west,east --dns west=" + s.west.dns + " --dns east=" + s.east.dns + controllers,
		"kubectl --context west -n demo get serviceimports,endpointslices,pods   # with a kubectl of yours",
		"kubectl --context east -n demo scale deployment web --replicas=5",
		"kubectl --context east -n demo delete serviceexport db",
		fmt.Sprintf("dig @%s -p %s db.demo.svc.clusterset.local", host, port),
	} {
		s.command(line)
	}
	s.say("Ctrl-C ends the demo.")
	ended := make(chan error, 1)
	for _, c := range s.clusters() {
		for _, p := range c.processes {
			go func() {
				<-p.Done()
				ended <- p.Err()
			}()
		}
	}
	select {
	case <-ctx.Done():
		s.chapter("stopping")
		return nil
	case err := <-ended:
		return err
	}
}
