// SPDX-License-Identifier: Apache-2.0

// Package apply makes the own cluster what a merge decided. It is the only
// writer: everything that the controller changes, Leases and Events apart, is
// changed here.
//
// All writes follow one form: what should be is compared with what is, and written
// only if they differ. All that is decided here is the condition Ready=False of what
// the API server refuses: if an object was not what the caches showed, or if the API
// server made more of a write than was asked for, such as an IP, the service is
// reconciled again. What the API server said last counts
// until the caches show it, and an event that shows just that is an echo, which
// causes no pass. What this controller did not make is neither changed nor deleted.
package apply
