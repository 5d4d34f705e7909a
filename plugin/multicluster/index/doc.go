// SPDX-License-Identifier: Apache-2.0

// Package index holds the records of a clusterset.
//
// The data flows one way:
//
//	ServiceImport ── FromServiceImport ──► Import ─┐
//	                                               ├─► Build ─► Service ─► Index.Update ─► Snapshot
//	EndpointSlice ── FromEndpointSlice ──► Slice ──┘                                          │
//	                                                    name.Request ──► Snapshot.Lookup ◄────┘
//
// An Import and a Slice are what DNS needs of an object, in a compact form. A Service is the immutable record set of one
// imported service. A Snapshot is an immutable set of services with the zones' SOA; a query loads one and looks no
// further. Building a service costs what the service costs, and publishing it costs a few small copies, however many
// other services there are.
//
// Records of ClusterSetIP services are made when an object changes and are shared by all answers: who takes them from an
// Answer may not change them, and the slices have no spare capacity to append into. Records of headless services are
// made when they are asked for, in a few allocations, from packed addresses: a prebuilt record takes ten times the memory
// of what it is made of, and less time to make than to pack. A few large answers are remembered and shared likewise.
//
// The package is pure: it reads no clock and knows no client.
package index
