// SPDX-License-Identifier: Apache-2.0

// Package apply makes the own cluster what a merge decided. It is the only
// writer: everything that the controller changes, Leases and Events apart, is
// changed here.
//
// All writes follow one form: what should be is compared with what is, and
// written only where they differ; where the API server says that what is known
// was stale, it is read anew, decided anew and compared anew. What the API server
// said last counts until the caches show it. What this controller did not make
// is neither changed nor deleted.
package apply
