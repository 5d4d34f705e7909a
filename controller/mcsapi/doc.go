// SPDX-License-Identifier: Apache-2.0

// Package mcsapi accesses the ServiceExports and ServiceImports of the local cluster in the version that its API server
// serves, and follows their CustomResourceDefinitions across install, upgrade and removal. The Go types of v1beta1
// stand for v1alpha1 too, which has the same schema. An older definition keeps fewer fields.
package mcsapi
