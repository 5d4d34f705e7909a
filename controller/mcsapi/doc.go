// SPDX-License-Identifier: Apache-2.0

// Package mcsapi reaches the ServiceExports and ServiceImports of the own
// cluster in whichever version its API server serves them, and follows their
// CustomResourceDefinitions as they appear, are upgraded, or go.
//
// v1alpha1 and v1beta1 have one schema in the release that introduced the
// latter, so the Go types of v1beta1 stand for both. An older definition keeps
// fewer fields: a Schema tells which, so that what would be dropped is neither
// sent nor compared.
package mcsapi
