// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/network"
)

const (
	// probeInterval is the interval of readiness probes, which is shorter than in a kubelet.
	probeInterval = 200 * time.Millisecond
	// refreshInterval is the interval at which ConfigMaps are read, which is shorter than in a kubelet.
	refreshInterval = time.Second
	// restartDelay is the time until a program that has ended is restarted.
	restartDelay = time.Second
	// requestTimeout limits a request to the API server.
	requestTimeout = 10 * time.Second
)

// A pod is a Pod that is bound to a node.
type pod struct {
	kubelet   *Kubelet
	object    *corev1.Pod // when it was first seen
	addresses []netip.Addr
	end       context.CancelFunc // ends the pod's life when it is deleted
	gone      chan struct{}      // closed when the pod no longer exists in the API

	mu      sync.Mutex
	network *network.Namespace
}

// dial connects to a port of the pod's loopback interface, like a port-forward.
func (p *pod) dial(ctx context.Context, port int32) (connection net.Conn, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.network == nil {
		return nil, errors.New("the pod does not run")
	}
	err = p.network.Do(func() (err error) {
		connection, err = new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
		return err
	})
	return connection, err
}

// live runs the pod until it is deleted (life) or the kubelet ends (ctx), and then removes it from the API. A pod that
// no longer exists there is not an error.
func (p *pod) live(ctx, life context.Context) error {
	err := p.work(ctx, life)
	if ctx.Err() != nil {
		return err // the kubelet has ended, but not the pod
	}
	request, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	gone := p.kubelet.Cluster.Client().CoreV1().Pods(p.object.Namespace).Delete(request, p.object.Name,
		metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To[int64](0), Preconditions: &metav1.Preconditions{UID: &p.object.UID},
		})
	if apierrors.IsNotFound(gone) || apierrors.IsConflict(gone) || ctx.Err() != nil {
		gone = nil
	}
	return errors.Join(err, gone)
}

// work runs the pod's program until the pod ends.
func (p *pod) work(ctx, life context.Context) error {
	container := p.object.Spec.Containers[0]
	program, known := p.kubelet.Images[container.Image]
	switch {
	case p.kubelet.Images == nil, known && program == "":
		p.report(life, true)
		<-life.Done()
		return nil
	case !known:
		<-life.Done()
		return fmt.Errorf("it waited for its image %s, which nobody has", container.Image)
	}
	namespace, err := network.New()
	if err != nil {
		return err
	}
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.network = nil
		_ = namespace.Close()
	}()
	if err := p.kubelet.Router.Attach(namespace, p.addresses); err != nil {
		return err
	}
	p.mu.Lock()
	p.network = namespace
	p.mu.Unlock()
	if !p.mount(life, program) {
		return nil
	}
	spec := namespace.In("", process.Spec{
		Name:    fmt.Sprintf("%s/%s of %s", p.object.Namespace, p.object.Name, p.kubelet.Cluster.Name()),
		Path:    "chroot",
		Args:    append([]string{p.root(), "/" + filepath.Base(program)}, container.Args...),
		Env:     p.environment(),
		LogFile: p.kubelet.logFile(p.object.Namespace, p.object.Name),
	})
	for {
		started, err := process.Start(spec)
		if err != nil {
			return err
		}
		p.watch(life, started)
		if life.Err() != nil {
			if hook := container.Lifecycle; hook != nil && hook.PreStop != nil && hook.PreStop.Sleep != nil {
				select {
				case <-time.After(time.Duration(hook.PreStop.Sleep.Seconds) * time.Second):
				case <-p.gone:
				case <-ctx.Done():
				}
			}
			grace := time.Duration(
				ptr.Deref(p.object.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)) *
				time.Second
			return started.Stop(ctx, grace) // without grace if the kubelet ends
		}
		p.report(life, false)
		select {
		case <-time.After(restartDelay):
		case <-life.Done():
			return nil
		}
	}
}

// environment returns the environment of the program.
func (p *pod) environment() []string {
	api := netip.MustParseAddrPort(p.kubelet.Cluster.Config().Host[len("https://"):])
	variables := []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOSTNAME=" + p.object.Name,
		"KUBERNETES_SERVICE_HOST=" + p.kubelet.Cluster.ServiceIP(1),
		"KUBERNETES_SERVICE_PORT=" + strconv.Itoa(int(api.Port())),
	}
	for _, variable := range p.object.Spec.Containers[0].Env {
		variables = append(variables, variable.Name+"="+variable.Value)
	}
	return variables
}

// watch probes the readiness of the program, and reports it, until the program or the pod ends.
func (p *pod) watch(ctx context.Context, started *process.Process) {
	probe := p.object.Spec.Containers[0].ReadinessProbe
	ready, failures := probe == nil, int32(0)
	p.report(ctx, ready)
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	refresh := time.NewTicker(refreshInterval)
	defer refresh.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-started.Done():
			return
		case <-refresh.C:
			p.refresh(ctx)
		case <-ticker.C:
			if probe == nil {
				continue
			}
			now := p.ask(ctx, probe)
			if failures++; now {
				failures = 0
			}
			if now != ready && (now || failures >= probe.FailureThreshold) {
				ready = now
				p.report(ctx, ready)
			}
		}
	}
}

// ask runs an HTTP probe. Other kinds are not supported.
func (p *pod) ask(ctx context.Context, probe *corev1.Probe) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(probe.TimeoutSeconds, 1))*time.Second)
	defer cancel()
	port := probe.HTTPGet.Port.IntVal
	for _, named := range p.object.Spec.Containers[0].Ports {
		if named.Name == probe.HTTPGet.Port.StrVal && named.Name != "" {
			port = named.ContainerPort
		}
	}
	url := fmt.Sprintf("http://%s%s", netip.AddrPortFrom(p.addresses[0], uint16(port)), probe.HTTPGet.Path)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	response, err := prober.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode >= 200 && response.StatusCode < 400
}

// prober makes a new connection for each request, as a kubelet does.
var prober = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// report writes the status of the pod, whose program runs or is about to run. A failed write fails the test, unless the
// pod is gone.
func (p *pod) report(ctx context.Context, ready bool) {
	container, now, is := p.object.Spec.Containers[0], metav1.Now(), corev1.ConditionFalse
	if ready {
		is = corev1.ConditionTrue
	}
	whole := corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: &now, PodIP: p.addresses[0].String(), ContainerStatuses: []corev1.ContainerStatus{{
			Name: container.Name, Image: container.Image, Ready: ready, Started: &ready,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		}},
	}
	for _, address := range p.addresses {
		whole.PodIPs = append(whole.PodIPs, corev1.PodIP{IP: address.String()})
	}
	for condition, value := range map[corev1.PodConditionType]corev1.ConditionStatus{
		corev1.PodInitialized: corev1.ConditionTrue, corev1.PodReady: is, corev1.ContainersReady: is,
	} {
		whole.Conditions = append(whole.Conditions,
			corev1.PodCondition{Type: condition, Status: value, LastTransitionTime: now})
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.object.UID}, "status": whole})
	if err == nil {
		request, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		_, err = p.kubelet.Cluster.Client().CoreV1().Pods(p.object.Namespace).Patch(request, p.object.Name,
			types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && ctx.Err() == nil {
		p.kubelet.t.Errorf("write the status of pod %s/%s of %s: %v", p.object.Namespace, p.object.Name, p.kubelet.Cluster.Name(), err)
	}
}
