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
	last map[watch.Resource]string // the reason
}

func (p *problems) note(resource watch.Resource, err error) {
	reason := ""
	if err != nil {
		reason = reasonOf(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.last[resource]
	if before == reason {
		return
	}
	if p.last == nil {
		p.last = make(map[watch.Resource]string)
	}
	p.last[resource] = reason
	switch reason {
	case "":
		log.Infof("Watching %s again", resource)
	case "expired":
		delete(p.last, resource) // an old watch ends like this, and the next list begins a new one
	case "not_found":
		log.Errorf("The API server has no %s: install the CRD; asking again until it is there: %v", resource, err)
	case "forbidden":
		log.Errorf("The API server does not let us list and watch %s: grant the right; asking again until it does: %v",
			resource, err)
	default:
		log.Warningf("Cannot watch %s, answering from what is known: %v", resource, err)
	}
}
