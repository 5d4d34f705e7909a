// SPDX-License-Identifier: Apache-2.0

// Command demo joins three clusters, and resolves names of each cluster in the others. It prints the commands that a
// user would type and their output, and fails if an answer is wrong. The three API servers are models in its own
// process, so no part of Kubernetes except its client libraries is compiled.
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

	controller "github.com/clusterset-dns/clusterset-dns/cmd/clusterset-controller/command"
	coredns "github.com/clusterset-dns/clusterset-dns/cmd/coredns/command"
	plugin "github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/command"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
	"github.com/clusterset-dns/clusterset-dns/test/demo/plane"
)

func main() {
	beProgram()
	flags := flag.NewFlagSet("demo", flag.ExitOnError)
	hold := flags.Bool("hold", false, "keep everything running after the story, until Ctrl-C")
	recording := flags.String("recording", "", "write an animated SVG of the story to this `file`")
	_ = flags.Parse(os.Args[1:]) // exits on an error
	n := &narrator{out: os.Stdout, began: time.Now()}
	err := process.TieToParent()
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = run(ctx, n, *hold)
		stop()
	}
	if err == nil && *recording != "" {
		err = os.WriteFile(*recording, []byte(n.recording()), 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
		os.Exit(1)
	}
}

// A failure is the value of the panic with which must ends the story.
type failure struct{ error }

// must ends the story if there is an error, which run then returns.
func must(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// get returns the value, or ends the story if there is an error.
func get[T any](value T, err error) T {
	must(err)
	return value
}

// run runs the story and cleans up.
func run(ctx context.Context, n *narrator, hold bool) (err error) {
	defer func() {
		switch failed := recover().(type) {
		case nil:
		case failure:
			err = failed.error
		default:
			panic(failed)
		}
	}()
	n.chapter("three clusters, joined")
	n.say("real:  clusterset-controller, CoreDNS, kubectl-clusterset, each a process; TLS and tokens between them")
	n.say("model: the Kubernetes API, held to kube-apiserver by contract tests, and its controllers; pods run nothing")
	planes, stop, err := plane.Start(ctx, "east", "west", "north")
	must(err)
	defer func() {
		if err := stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	s := &story{
		narrator: n, config: filepath.Join(planes[0].Directory(), "demo.kubeconfig"), bin: filepath.Join(planes[0].Directory(), "bin"),
	}
	for _, each := range planes {
		s.all = append(s.all, &cluster{Cluster: each})
		n.say("%s: %s", each.Name(), each.Config().Host)
	}
	s.clusters, s.east, s.west, s.north = s.all[:2], s.all[0], s.all[1], s.all[2]
	n.say("started in %.1f s", time.Since(n.began).Seconds())
	must(plane.WriteKubeconfig(s.config, planes...))
	must(link(s.bin))
	defer func() {
		for _, c := range s.all {
			c.stop(context.WithoutCancel(ctx))
		}
	}()
	s.tell(ctx)
	n.chapter("all answers were right, in %.1f s", time.Since(n.began).Seconds())
	if hold {
		return s.hold(ctx)
	}
	return nil
}

// hold exports everything again, and waits for Ctrl-C.
func (s *story) hold(ctx context.Context) error {
	s.chapter("everything goes on running until Ctrl-C; both services are exported again")
	s.applyBoth(ctx, "web.yaml")
	s.applyBoth(ctx, "db.yaml")
	for _, c := range s.clusters {
		s.await(ctx, c, webName, "A", c.importIP(ctx), time.Now())
	}
	ended := make(chan error, 1)
	for _, c := range s.clusters {
		s.say("%s: DNS at %s, the controller's metrics at http://%s/metrics, logs in %s", c.Name(), c.dns, c.controller.Address,
			c.Directory())
		for _, p := range c.processes {
			go func() {
				<-p.Done()
				ended <- p.Err()
			}()
		}
	}
	host, port, _ := strings.Cut(s.west.dns, ":")
	controllers := " --controller east=" + s.east.controller.Address + " --controller west=" + s.west.controller.Address // which are no pods
	s.chapter("in another terminal")
	for _, line := range []string{
		"export KUBECONFIG=" + s.config + " PATH=" + s.bin + ":$PATH",
		"kubectl-clusterset status --contexts east,west" + controllers,
		"kubectl-clusterset explain demo/web --contexts west,east --dns west=" + s.west.dns + " --dns east=" + s.east.dns + controllers,
		"kubectl --context west -n demo get serviceimports,endpointslices,pods   # with a kubectl of yours",
		"kubectl --context east -n demo scale deployment web --replicas=5",
		"kubectl --context east -n demo delete serviceexport db",
		fmt.Sprintf("dig @%s -p %s db.demo.svc.clusterset.local", host, port),
	} {
		s.command("%s", line)
	}
	s.say("Ctrl-C ends the demo.")
	select {
	case <-ctx.Done():
		s.chapter("stopping")
		return nil
	case err := <-ended:
		return err
	}
}

// programs are the main functions of the product's programs. The demo is a single executable that runs one of them if
// it is called by its name: linking one executable takes a third of the time of linking three.
var programs = map[string]func(version string) int{
	"clusterset-controller": controller.Main,
	"coredns":               func(version string) int { coredns.Main(version); return 0 },
	"kubectl-clusterset":    plugin.Main,
}

// link creates a folder in which this executable has the names of the programs.
func link(folder string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	for name := range programs {
		if err := os.Symlink(self, filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}

// beProgram runs the program by whose name this executable was called. It then does not return.
func beProgram() {
	if run := programs[filepath.Base(os.Args[0])]; run != nil {
		os.Exit(run("demo"))
	}
}
