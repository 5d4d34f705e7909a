// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/diagnosis"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/network"
)

const probeSelector = "app.kubernetes.io/component=probe"

// connectivity: `kubectl clusterset test connectivity` finds each path that is cut, and no other, and leaves nothing.
func connectivity(t *testing.T, b *bed) {
	p := startProbes(t, b)
	for _, test := range []struct {
		name string
		cut  string // rules of nftables on the way between nodes
		lost string // the cluster whose nodes' cache does not know the zone
		want map[string]state.ProbeStep
	}{
		{"everything works", "", "", nil},
		{
			"paths are cut", fmt.Sprintf(`
ct state new ip saddr %[1]s ip daddr %[2]s drop
ct state new ip6 saddr %[3]s ip6 daddr %[4]s drop
ip saddr { %[5]s, %[1]s } ip daddr { %[5]s, %[1]s } ip length > 1300 drop
ip6 saddr { %[6]s, %[3]s } ip6 daddr { %[6]s, %[3]s } ip6 length > 1260 drop`,
				b.west.Options().PodCIDRs[0], b.north.Options().PodCIDRs[0], b.west.Options().PodCIDRs[1],
				b.north.Options().PodCIDRs[1],
				b.east.Options().PodCIDRs[0], b.east.Options().PodCIDRs[1]), "north",
			map[string]state.ProbeStep{
				"east>west": state.ProbeLargeLost, "west>east": state.ProbeLargeLost, "west>north": state.ProbeTimeout,
				"north>east": state.ProbeUnresolved, "north>west": state.ProbeUnresolved, "north>north": state.ProbeUnresolved,
			},
		},
	} {
		p.setLost(test.lost)
		p.cut(t, test.cut)
		var found diagnosis.ConnectivityReport
		out, status := p.run(t, "-o", "json", "--timeout", "30s")
		must(t, json.Unmarshal([]byte(out), &found))
		if len(found.Paths) != 3*3*2 || (status == 0) != (len(test.want) == 0) || status != 0 && status != 3 {
			t.Errorf("%s: exit status %d, %d paths", test.name, status, len(found.Paths))
		}
		for _, path := range found.Paths {
			if want := cmp.Or(test.want[path.From+">"+path.To], state.ProbeOK); path.Step != want {
				t.Errorf("%s: want %q, got %+v", test.name, want, path)
			}
		}
		p.nothingRemains(t)
	}
}

// probes plays the kubelets for the pods of the command: it runs what they ask for, and serves their logs.
type probes struct {
	bed        *bed
	kubeconfig string
	lost       string

	mu     sync.Mutex
	pods   map[types.UID]*probePod
	failed error
}

type probePod struct {
	name    string // with the cluster
	network *network.Namespace
	process *process.Process
}

func startProbes(t *testing.T, b *bed) *probes {
	t.Helper()
	p := &probes{bed: b, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), pods: map[types.UID]*probePod{}}
	config := clientcmdapi.NewConfig()
	for _, c := range b.all() {
		text, err := c.Kubeconfig()
		must(t, err)
		one, err := clientcmd.Load(text)
		must(t, err)
		config.Clusters[c.Name()], config.AuthInfos[c.Name()], config.Contexts[c.Name()] = one.Clusters[c.Name()],
			one.AuthInfos[c.Name()], one.Contexts[c.Name()]
		p.serve(t, c)
		_, err = c.AppsV1().Deployments(system).Create(t.Context(), deployment(), metav1.CreateOptions{})
		must(t, err)
	}
	must(t, clientcmd.WriteToFile(*config, p.kubeconfig))
	p.serveNothing(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ticker := time.NewTicker(100 * time.Millisecond); ctx.Err() == nil; <-ticker.C {
			for _, c := range b.all() {
				_ = p.note(p.look(ctx, c))
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		must(t, p.note(nil))
	})
	return p
}

// deployment is that of the controller, which runs without it.
func deployment() *appsv1.Deployment {
	labels := map[string]string{"app": "clusterset-controller"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "clusterset-controller"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{
					{Name: "controller", Image: "example.org/clusterset-controller:test", SecurityContext: &corev1.SecurityContext{
						RunAsNonRoot: new(true), AllowPrivilegeEscalation: new(bool),
						Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
						SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
					}},
				}},
			},
		},
	}
}

// note remembers an error, and returns all.
func (p *probes) note(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = errors.Join(p.failed, err)
	return p.failed
}

func (p *probes) setLost(cluster string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = cluster
}

// look starts what is new among the pods of a cluster, and stops what is gone.
func (p *probes) look(ctx context.Context, c *cluster) error {
	list, err := c.CoreV1().Pods(system).List(ctx, metav1.ListOptions{LabelSelector: probeSelector})
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	known := map[types.UID]bool{}
	for i := range list.Items {
		object := &list.Items[i]
		known[object.UID] = true
		if p.pods[object.UID] != nil || len(object.Status.PodIPs) == 0 {
			continue
		}
		if p.pods[object.UID], err = p.start(c, object); err != nil {
			return err
		}
	}
	for uid, started := range p.pods {
		if strings.HasPrefix(started.name, c.Name()+"/") && !known[uid] {
			delete(p.pods, uid)
			err = errors.Join(err, started.process.Kill(), started.network.Close())
		}
	}
	return err
}

func (p *probes) start(c *cluster, object *corev1.Pod) (*probePod, error) {
	made, err := network.New()
	if err != nil {
		return nil, err
	}
	var addresses []netip.Addr
	for _, ip := range object.Status.PodIPs {
		addresses = append(addresses, netip.MustParseAddr(ip.IP))
	}
	node := c.nodes[slices.IndexFunc(c.nodes, func(n *node) bool { return n.name == object.Spec.NodeName })]
	if err := node.Attach(made, addresses); err != nil {
		return nil, err
	}
	server := c.dns
	if p.lost == c.Name() {
		server = apiAddress.String()
	}
	file := filepath.Join(c.Directory(), "resolv.conf-"+string(object.UID))
	if err := os.WriteFile(file, []byte(resolvConf(system, server)), 0o600); err != nil {
		return nil, err
	}
	started, err := process.Start(made.In(file, process.Spec{
		Name: object.Name, Path: p.bed.program("clusterset-controller"), Args: object.Spec.Containers[0].Args,
		LogFile: filepath.Join(c.Directory(), object.Name+".log"),
	}))
	return &probePod{name: c.Name() + "/" + object.Name, network: made, process: started}, err
}

// serve is the kubelet of all nodes of a cluster. The API server finds it at their hostname; kube-proxy knows them by
// their addresses.
func (p *probes) serve(t testing.TB, c *cluster) {
	t.Helper()
	certificate, err := tls.LoadX509KeyPair(filepath.Join(c.Directory(), "apiserver.crt"),
		filepath.Join(c.Directory(), "apiserver.key"))
	must(t, err)
	listener, err := tls.Listen("tcp", apiAddress.String()+":0", &tls.Config{Certificates: []tls.Certificate{certificate}})
	must(t, err)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{name}/{container}", func(response http.ResponseWriter, request *http.Request) {
		http.ServeFile(response, request, filepath.Join(c.Directory(), request.PathValue("name")+".log"))
	})
	server := &http.Server{Handler: mux}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		must(t, server.Close())
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	for _, n := range c.nodes {
		object, err := c.CoreV1().Nodes().Get(t.Context(), n.name, metav1.GetOptions{})
		must(t, err)
		for i := range object.Status.Addresses {
			if address := &object.Status.Addresses[i]; address.Type == corev1.NodeHostName {
				address.Address = apiAddress.String()
			}
		}
		object.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(netip.MustParseAddrPort(listener.Addr().String()).Port())
		_, err = c.CoreV1().Nodes().UpdateStatus(t.Context(), object, metav1.UpdateOptions{})
		must(t, err)
	}
}

// serveNothing is a DNS without any zone, as a cache on nodes is for the zone of the set.
func (p *probes) serveNothing(t testing.TB) {
	t.Helper()
	socket, err := net.ListenPacket("udp", apiAddress.String()+":53")
	must(t, err)
	server := &dns.Server{PacketConn: socket, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, question *dns.Msg) {
		_ = w.WriteMsg(new(dns.Msg).SetRcode(question, dns.RcodeNameError))
	})}
	started, ended := make(chan struct{}), make(chan error, 1)
	server.NotifyStartedFunc = func() { close(started) }
	go func() { ended <- server.ActivateAndServe() }()
	<-started
	t.Cleanup(func() {
		must(t, server.Shutdown())
		must(t, <-ended)
	})
}

// cut has the router between the nodes drop packets.
func (p *probes) cut(t testing.TB, rules string) {
	t.Helper()
	command := exec.Command("nft", "-f", "-")
	command.Stdin = strings.NewReader("table inet cut\ndelete table inet cut\ntable inet cut {\nchain forward {\n" +
		"type filter hook forward priority 0\n" + rules + "\n}\n}\n")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("nft: %v\n%s", err, out)
	}
}

// run tests all clusters, and returns what was written and the exit status.
func (p *probes) run(t testing.TB, args ...string) (string, int) {
	t.Helper()
	command := exec.Command(p.bed.program("kubectl-clusterset"), append([]string{
		"test", "connectivity", "--contexts", "east,west,north",
	}, args...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+p.kubeconfig)
	var out, progress bytes.Buffer
	command.Stdout, command.Stderr = &out, &progress
	must(t, process.StartTied(command))
	err := command.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	t.Log(progress.String())
	return out.String(), command.ProcessState.ExitCode()
}

// nothingRemains of the objects of a test.
func (p *probes) nothingRemains(t testing.TB) {
	t.Helper()
	options := metav1.ListOptions{LabelSelector: probeSelector}
	for _, c := range p.bed.all() {
		eventually(t, "nothing to remain in "+c.Name(), func(ctx context.Context) error {
			pods, err := c.CoreV1().Pods(system).List(ctx, options)
			if err != nil {
				return err
			}
			services, err := c.CoreV1().Services(system).List(ctx, options)
			if err != nil {
				return err
			}
			exports, err := c.mcs.MulticlusterV1beta1().ServiceExports(system).List(ctx, options)
			if err != nil {
				return err
			}
			if n := len(pods.Items) + len(services.Items) + len(exports.Items); n > 0 {
				return fmt.Errorf("there are %d objects", n)
			}
			return nil
		})
	}
	eventually(t, "programs of the test to end", func(context.Context) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.pods) > 0 {
			return fmt.Errorf("%d run", len(p.pods))
		}
		return nil
	})
	must(t, p.note(nil))
}
