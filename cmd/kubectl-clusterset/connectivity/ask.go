// SPDX-License-Identifier: Apache-2.0

package connectivity

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/clusterset-dns/clusterset-dns/cmd/clusterset-controller/probe"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/probepod"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/progress"
)

// atOnce is how many targets a request has, so that its answer comes before
// proxies give up.
const atOnce = 64

// A prober asks one pod.
type prober struct {
	pod Pod
	*probepod.Connection
}

// probe has all pods try all paths.
func (o Options) probe(ctx context.Context, sites []*site, pods []Pod, n names, without skips) ([]Probe, error) {
	probers := make([]prober, len(pods))
	defer func() {
		for _, p := range probers {
			p.Close()
		}
	}()
	o.Teller.Say("Testing the paths between %d pods", len(pods))
	found := make([][]Probe, len(pods))
	inAll := func(do func(ctx context.Context, i int) error) error {
		group, ctx := errgroup.WithContext(ctx)
		for i := range pods {
			group.Go(func() error {
				if err := do(ctx, i); err != nil {
					return fmt.Errorf("context %s: pod %s: %w", pods[i].Context, pods[i].Name, err)
				}
				return nil
			})
		}
		return group.Wait()
	}
	// A pod is asked once all of them answer: one whose program only begins would refuse the others.
	err := inAll(func(ctx context.Context, i int) (err error) {
		s := sites[slices.IndexFunc(sites, func(s *site) bool { return s.Context == pods[i].Context })]
		probers[i].pod = pods[i]
		probers[i].Connection, err = probepod.Open(ctx, o.Teller, s.Cluster, pods[i].Name)
		return err
	})
	if err == nil {
		err = inAll(func(ctx context.Context, i int) (err error) {
			found[i], err = o.ask(ctx, probers[i], questions(pods[i], pods, n, without), pods)
			found[i] = append(found[i], skipped(pods[i], pods, n, without)...)
			return err
		})
	}
	for i := range pods {
		if probers[i].Connection != nil {
			pods[i].Nameservers = probers[i].Nameservers
		}
	}
	return slices.Concat(found...), err
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
		reply, err := p.Send(ctx, probe.Request{Targets: targets})
		if err != nil {
			return nil, err
		}
		for i, q := range part {
			found = append(found, judge(p.pod, q, reply.Results[i], pods)...)
		}
	}
	return found, nil
}
