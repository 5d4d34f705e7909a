// SPDX-License-Identifier: Apache-2.0

// Package apply makes the local cluster match the result of a merge. It is the only writer of the controller, apart
// from Leases and Events.
//
// Each write compares the desired object with the existing one and is made only if they differ. If the existing object
// was stale, or if the API server's answer affects other objects (an IP, say), the service is reconciled again, once
// events have shown all writes. Events that only show the controller's own write cause no pass, except for a deletion.
// Objects of other owners are neither changed nor deleted. The only decisions made here concern what the API server
// rejects: the condition Ready=False, and one IP for imports whose schema allows no second one.
package apply
