// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"fmt"
	"sync"
)

const (
	// maxForeign is how many names of foreign records are kept. The next read finds the others.
	maxForeign = 1000
	// maxName is the length of the longest name that an API server takes.
	maxName = 253
)

// addForeign notes a record that the key has not signed, to be deleted.
func (r *relay) addForeign(name string) {
	if len(r.foreign) < maxForeign && len(name) <= maxName {
		r.foreign[name] = struct{}{}
	}
}

// clean deletes a few foreign records at once. The next pass deletes more, so that the heartbeat waits for one request.
func (r *relay) clean(ctx context.Context, client *client) error {
	var names []string
	for name := range r.foreign {
		if len(names) == writers {
			r.signal()
			break
		}
		names = append(names, name)
	}
	errs := make([]error, len(names))
	var group sync.WaitGroup
	for i, name := range names {
		group.Go(func() { errs[i] = client.delete(ctx, name) })
	}
	group.Wait()
	var first error
	for i, name := range names {
		if errs[i] == nil {
			delete(r.foreign, name)
		} else if first == nil {
			first = fmt.Errorf("delete record %s, which this key has not signed: %w", name, errs[i])
		}
	}
	return first
}
