// SPDX-License-Identifier: Apache-2.0

package figure

import "time"

// Floor is what the same requests took a client that does nothing else.
type Floor struct {
	// Took and CPU are the time and the processor time of all requests.
	Took, CPU time.Duration
	// Count is the number of changes, P50 and P99 how long one took from its request to the event of a watch.
	Count    int
	P50, P99 time.Duration
}
