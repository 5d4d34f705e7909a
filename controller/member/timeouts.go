// SPDX-License-Identifier: Apache-2.0

package member

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Timeouts of a connection. A heartbeat arrives every 5 s, so a connection without a frame for pingAfter is probed and
// closed if the probe is not answered within pingTimeout.
const (
	dialTimeout         = 10 * time.Second
	tlsHandshakeTimeout = 10 * time.Second
	pingAfter           = 10 * time.Second
	pingTimeout         = 5 * time.Second
	// idleTimeout closes a connection that became idle after its client was closed: it was being established, or its
	// requests were just canceled.
	idleTimeout = 90 * time.Second
)

// Timeouts of requests.
const (
	// patience bounds the response to a list and the beginning of a watch. Pings only prove the connection: a proxy may
	// answer them and have lost the request. An API server answers or fails within 60 s (kube-apiserver's
	// --request-timeout).
	patience = 70 * time.Second
	// pageWithin bounds how long a page of a list may take once it has its turn: others wait for it, in the order in which
	// they came.
	pageWithin = 15 * time.Second
)

// retry is the backoff of failed requests, for each of a member's two watches on its own. It is reset after a watch that
// lasted: occasional disconnects must cost no heartbeat.
var retry = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 15 * time.Second}

const lasting = 5 * time.Second

// sourceInterval is the time between two lists of a source, and sourcePatience bounds a list. Files of Static are read with
// each filesEvery-th: all credentials are parsed then.
const (
	sourceInterval = 10 * time.Second
	sourcePatience = 5 * time.Second
	filesEvery     = 6
)
