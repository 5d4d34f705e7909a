// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"sync"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/watch"
)

// problems logs what keeps resources from being watched: once when it begins, once when it changes and once when it
// ends, however often it is tried.
type problems struct {
	mu   sync.Mutex
	last map[string]string // the reason, by watched resource
}

func (p *problems) note(resource watch.Resource, namespace string, err error) {
	watched := string(resource)
	if namespace != "" {
		watched += " in namespace " + namespace
	}
	reason := ""
	if err != nil {
		reason = reasonOf(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.last[watched]
	if before == reason {
		return
	}
	if p.last == nil {
		p.last = make(map[string]string)
	}
	p.last[watched] = reason
	switch reason {
	case "":
		log.Infof("Watching %s again", watched)
	case "expired":
		delete(p.last, watched) // an old watch ends like this, and the next list begins a new one
	case "not_found":
		log.Errorf("The API server has no %s: install the CRD; asking again until it is there: %v", watched, err)
	case "forbidden":
		log.Errorf("The API server does not let us list and watch %s: grant the right; asking again until it does: %v",
			watched, err)
	default:
		log.Warningf("Cannot watch %s, answering from what is known: %v", watched, err)
	}
}
