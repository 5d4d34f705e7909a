// SPDX-License-Identifier: Apache-2.0

// Command demo starts two real control planes, joins them, and shows that a name of one is answered in the other. It
// prints the commands that one would type and what came back, and ends with an error where an answer is wrong.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/assets"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
	own "github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
)

func main() {
	hold := flag.Bool("hold", false, "keep everything running after the story, until Ctrl-C")
	bin := flag.String("bin", "", "folder of coredns, clusterset-controller and kubectl-clusterset; they are built if it is empty")
	flag.Parse()
	if err := process.TieToParent(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *bin, *hold)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
		os.Exit(1)
	}
}

// run tells the story and leaves nothing behind.
func run(ctx context.Context, bin string, hold bool) (err error) {
	// All programs are built before the clock starts.
	programs, err := assets.Ensure(ctx, os.Stderr, append(assets.Cluster(), assets.Kubectl)...)
	if err != nil {
		return err
	}
	if bin == "" {
		fmt.Fprintln(os.Stderr, "building coredns, clusterset-controller and kubectl-clusterset, unless they are up to date")
		if bin, err = own.Build(ctx, "cmd/coredns", "cmd/clusterset-controller", "cmd/kubectl-clusterset"); err != nil {
			return err
		}
	}
	began := time.Now()
	n := narrator{os.Stdout}
	n.chapter("two clusters: etcd, kube-apiserver, Kubernetes' controllers, kube-scheduler; kwok plays the nodes")
	planes, err := controlplane.StartAll(ctx, controlplane.Options{Name: "east"}, controlplane.Options{Name: "west"})
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := controlplane.StopAll(planes...); err == nil {
			err = stopErr
		}
	}()
	clusters := make([]*cluster, len(planes))
	for i, plane := range planes {
		if clusters[i], err = newCluster(plane); err != nil {
			return err
		}
		n.say("%s: %s", plane.Name(), plane.Config().Host)
	}
	n.say("started in %.1f s", time.Since(began).Seconds())

	merged := filepath.Join(planes[0].Directory(), "demo.kubeconfig")
	if err := mergeKubeconfigs(ctx, programs[assets.Kubectl], merged, clusters); err != nil {
		return err
	}
	s := &story{
		narrator: n, kubectl: kubectl{n, programs[assets.Kubectl], merged, bin}, east: clusters[0], west: clusters[1],
	}
	defer func() {
		for _, c := range clusters {
			c.stop(context.WithoutCancel(ctx))
		}
	}()
	if err := s.join(ctx, bin); err != nil {
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
		if _, err := s.await(ctx, lookup{c.dns, webName, "A", found(addresses(webName, ip)...)},
			time.Now()); err != nil {
			return err
		}
	}
	for _, c := range s.clusters() {
		s.say("%s: DNS at %s, the controller's metrics at http://%s/metrics, logs in %s", c.name, c.dns, c.health,
			c.plane.Directory())
	}
	s.say("export KUBECONFIG=%s   # contexts east and west", s.kubectl.config)
	s.say("kubectl is at %s", s.kubectl.binary)
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

// kubectl runs the real kubectl and prints what it is asked and what it says.
type kubectl struct {
	narrator
	binary string
	config string
	bin    string // the folder of kubectl-clusterset
}

func (k kubectl) run(ctx context.Context, c *cluster, args ...string) error {
	args = append([]string{"--context", c.name}, args...)
	k.command("kubectl " + strings.Join(args, " "))
	out, err := k.quiet(ctx, args...)
	k.output(out)
	return err
}

// plugin runs kubectl clusterset.
func (k kubectl) plugin(ctx context.Context, args ...string) error {
	args = append([]string{"clusterset"}, args...)
	k.command("kubectl " + strings.Join(args, " "))
	out, err := k.quiet(ctx, args...)
	k.output(out)
	return err
}

func (k kubectl) quiet(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, k.binary, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+k.config,
		"PATH="+k.bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := command.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// mergeKubeconfigs writes one kubeconfig with a context for each cluster.
func mergeKubeconfigs(ctx context.Context, binary, path string, clusters []*cluster) error {
	paths := make([]string, 0, len(clusters))
	for _, c := range clusters {
		paths = append(paths, c.kubeconfig)
	}
	command := exec.CommandContext(ctx, binary, "config", "view", "--flatten")
	command.Env = append(os.Environ(), "KUBECONFIG="+strings.Join(paths, string(os.PathListSeparator)))
	merged, err := command.Output()
	if err != nil {
		return fmt.Errorf("merge the kubeconfigs of all clusters: %w", err)
	}
	if err := os.WriteFile(path, merged, 0o600); err != nil {
		return fmt.Errorf("merge the kubeconfigs of all clusters: %w", err)
	}
	return nil
}
