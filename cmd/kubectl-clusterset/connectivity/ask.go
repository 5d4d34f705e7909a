// SPDX-License-Identifier: Apache-2.0

package connectivity

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/clusterset-dns/clusterset-dns/cmd/clusterset-controller/probe"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/forward"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/progress"
)

const (
	// atOnce is how many targets a request has, so that its answer comes before
	// proxies give up.
	atOnce = 64
	// askTimeout bounds one request.
	askTimeout = 50 * time.Second
	// reachTimeout is how long a pod may take to answer its first request.
	reachTimeout = 30 * time.Second
	// maxReply bounds the answer to one.
	maxReply = 16 << 20
)

// A prober asks one pod.
type prober struct {
	pod         Pod
	nameservers []string
	way         string // the local address of the port-forward
	close       func()
}

// probe has all pods try all paths.
func (o Options) probe(ctx context.Context, sites []*site, pods []Pod, n names, without skips) ([]Probe, error) {
	probers := make([]prober, len(pods))
	defer func() {
		for _, p := range probers {
			if p.close != nil {
				p.close()
			}
		}
	}()
	o.Teller.Say("Testing the paths between %d pods", len(pods))
	found := make([][]Probe, len(pods))
	group, ctx := errgroup.WithContext(ctx)
	for i := range pods {
		group.Go(func() (err error) {
			s := sites[slices.IndexFunc(sites, func(s *site) bool { return s.Context == pods[i].Context })]
			if probers[i], err = o.reach(ctx, s.Cluster, pods[i]); err == nil {
				asked := questions(pods[i], pods, n, without)
				found[i], err = o.ask(ctx, probers[i], asked, pods)
			}
			if err != nil {
				return fmt.Errorf("context %s: pod %s: %w", pods[i].Context, pods[i].Name, err)
			}
			found[i] = append(found[i], skipped(pods[i], pods, n, without)...)
			return nil
		})
	}
	err := group.Wait()
	for i := range pods {
		pods[i].Nameservers = probers[i].nameservers
	}
	return slices.Concat(found...), err
}

// reach opens a way to a pod. Its program may need a moment to begin.
func (o Options) reach(ctx context.Context, c *cluster.Cluster, pod Pod) (prober, error) {
	p := prober{pod: pod}
	teller := o.Teller
	teller.Timeout = min(teller.Timeout, reachTimeout)
	err := teller.Wait(ctx, func(ctx context.Context) (string, error) {
		var err error
		if p.way, p.close, err = forward.Open(ctx, c, c.Namespace, pod.Name, probe.ControlPort); err == nil {
			var reply probe.Reply
			if reply, err = p.send(ctx, nil); err == nil {
				p.nameservers = reply.Nameservers
				return "", nil
			}
			// A port-forward ends with its first error.
			p.close()
			p.close = nil
		}
		return fmt.Sprintf("pod %s in %s does not answer through a port-forward yet (%v)", pod.Name, pod.Context, err), nil
	})
	return p, err
}

// ask asks all questions, and those about names again until they are settled.
func (o Options) ask(ctx context.Context, p prober, asked []question, pods []Pod) ([]Probe, error) {
	byName := func(q question) bool { return q.byName() }
	found, err := p.all(ctx, slices.DeleteFunc(slices.Clone(asked), byName), pods)
	if err != nil {
		return nil, err
	}
	names := slices.DeleteFunc(slices.Clone(asked), func(q question) bool { return !q.byName() })
	named, err := p.all(ctx, names, pods)
	if err != nil || unsettled(found, named) == nil {
		return append(found, named...), err
	}
	teller := o.Teller
	teller.Timeout = nameTimeout
	err = teller.Wait(ctx, func(ctx context.Context) (string, error) {
		again, err := p.all(ctx, names, pods)
		if err != nil {
			return "", err
		}
		named = again
		if waiting := unsettled(found, named); waiting != nil {
			return fmt.Sprintf("%s does not lead to pods in %s yet", waiting.Target, p.pod.Context), nil
		}
		return "", nil
	})
	if errors.Is(err, progress.ErrTimeout) {
		err = nil // which is the result
	}
	return append(found, named...), err
}

// unsettled is the first probe of a name that failed although addresses did not,
// nil if there is none.
func unsettled(addresses, names []Probe) *Probe {
	for i, name := range names {
		if name.Result == Failed && (name.Address == "" || !slices.ContainsFunc(addresses, func(p Probe) bool {
			return p.Result == Failed && (name.To.Context == "" || name.To.Context == p.To.Context)
		})) {
			return &names[i]
		}
	}
	return nil
}

// all asks questions, so many at once as a request may have.
func (p prober) all(ctx context.Context, asked []question, pods []Pod) (found []Probe, err error) {
	for part := range slices.Chunk(asked, atOnce) {
		targets := make([]probe.Target, len(part))
		for i, q := range part {
			targets[i] = q.target
		}
		reply, err := p.send(ctx, targets)
		if err != nil {
			return nil, err
		}
		for i, q := range part {
			found = append(found, judge(p.pod, q, reply.Results[i], pods)...)
		}
	}
	return found, nil
}

// send posts one request.
func (p prober) send(ctx context.Context, targets []probe.Target) (probe.Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	body, err := json.Marshal(probe.Request{Targets: targets})
	if err != nil {
		return probe.Reply{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+p.way+probe.ControlPath,
		bytes.NewReader(body))
	if err != nil {
		return probe.Reply{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return probe.Reply{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxReply))
	if err != nil {
		return probe.Reply{}, err
	}
	if response.StatusCode != http.StatusOK {
		return probe.Reply{}, fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(text)))
	}
	var reply probe.Reply
	if err := json.Unmarshal(text, &reply); err != nil {
		return probe.Reply{}, err
	}
	if len(reply.Results) != len(targets) {
		return probe.Reply{}, fmt.Errorf("%d results for %d targets", len(reply.Results), len(targets))
	}
	return reply, nil
}
