// SPDX-License-Identifier: Apache-2.0

// Package apiserver is a model of a Kubernetes API server, in memory and behind
// http.RoundTripper, for simulations on virtual time (testing/synctest).
//
// It has the semantics that controllers depend on: revisions and optimistic concurrency, UIDs and generations, lists at
// a revision with pages, watches by revision with bookmarks, streamed lists and 410 after compaction, label and field
// selectors, the status subresource, finalizers, owner references and garbage collection, the life of namespaces,
// Services with allocated cluster IPs, custom resources in the versions that their CustomResourceDefinition serves, dry
// runs, preconditions, refusals, JSON and protobuf. For the demo it has tokens of service accounts, discovery and all
// patches, which TestDemo tests.
//
// It does not model rights (RBAC), tables, metadata-only objects, OpenAPI, defaulting or validation of custom
// resources, field ownership in server-side apply, aggregation, or built-in resources that are not among its kinds. The
// contract test compares it with a real kube-apiserver.
//
//	resources  which resources there are, and what is special about each
//	store      revisions: what exists, what existed, what happened
//	handle     one request: get, list, create, update, patch, delete
//	admit      what the server fills in and refuses
//	service    the same for Services, and their cluster IPs
//	collect    what follows a deletion: finalizers, dependents, namespaces
//	watch      streams of events
//	encode     JSON and protobuf
//	access     tokens
//	discovery  which resources there are, for clients
package apiserver
