// SPDX-License-Identifier: Apache-2.0

package member

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Timeouts of a connection. A heartbeat arrives every 5 s, so a connection without a frame for pingAfter is probed and
// closed if the probe is not answered within pingTimeout.
const (
	dialTimeout = 10 * time.Second // and that of the TLS handshake that follows
	pingAfter   = 10 * time.Second
	pingTimeout = 5 * time.Second
	// idleTimeout closes a connection that became idle after its client was closed: it was being established, or its
	// requests were just canceled.
	idleTimeout = 90 * time.Second
)

// Timeouts of requests.
const (
	// patience bounds the wait for the headers of a response. Pings only prove the connection: a proxy may answer them although
	// it lost the request. An API server answers or fails within 60 s (kube-apiserver's --request-timeout).
	patience = 70 * time.Second
	// pageWithin bounds how long a page of a list may take once it has its turn: pages of other members wait for it.
	pageWithin = 15 * time.Second
	// silence ends a watch without an event. An API server sends a bookmark about every minute.
	silence = 3 * time.Minute
)

// retry is the backoff of failed requests, separate for each of a member's two watches. A watch longer than lasting resets it:
// occasional disconnects must cost no heartbeat.
var retry = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 15 * time.Second}

const lasting = 5 * time.Second

// heartbeatPause follows each heartbeat in a watch: each may change how the member is judged, and so cause Events and reconciles.
const heartbeatPause = 200 * time.Millisecond

// sourceInterval is the time between two lists of a source, and sourcePatience bounds a list.
const (
	sourceInterval = 10 * time.Second
	sourcePatience = 5 * time.Second
)
