// SPDX-License-Identifier: Apache-2.0

// Package scope decides which clusters an export is for, and which services of members are imported: patterns of services
// and of denied namespaces, selectors of clusters, and the ClusterProperties (KEP-2149) that selectors look at.
//
// The package is pure. docs/design.md#scope describes the formats, docs/use/export-services.md the terms of selectors.
package scope

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// AcceptAnnotation on the Secret of a member: what the member may contribute, as patterns namespace or
	// namespace/service, separated by commas; empty accepts nothing.
	AcceptAnnotation = "clusterset-dns.github.io/accept"
	// AcceptLabel on a Namespace: "true" accepts services of this namespace from members whose Secret lacks the annotation.
	AcceptLabel = AcceptAnnotation
	// MaxBytes bounds the text of patterns and of the properties of a cluster.
	MaxBytes = 4096
	// Everything is the pattern that accepts all services, and the term of a selector that selects all clusters.
	Everything = "*"
)

// word is a pattern: of a namespace, or of a namespace and a service.
var word = regexp.MustCompile(`^[-a-z0-9*?]+(/[-a-z0-9*?]+)?$`)

// Patterns accept services. The zero value accepts none. They are immutable.
type Patterns struct{ words []string }

// AllServices are the patterns that accept everything.
var AllServices = Patterns{[]string{Everything}}

// ParsePatterns parses patterns that are separated by commas: namespace or namespace/service, with the wildcards * and ?.
// The empty text has none.
func ParsePatterns(text string) (Patterns, error) {
	if len(text) > MaxBytes {
		return Patterns{}, fmt.Errorf("the patterns have %d bytes: use at most %d", len(text), MaxBytes)
	}
	var parsed Patterns
	if strings.TrimSpace(text) == "" {
		return parsed, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if !word.MatchString(part) {
			return Patterns{}, fmt.Errorf("pattern %.100q is neither namespace nor namespace/service, with * and ?", part)
		}
		parsed.words = append(parsed.words, part)
	}
	return parsed, nil
}

// Accepts reports whether a pattern matches a service.
func (p Patterns) Accepts(service types.NamespacedName) bool {
	return slices.ContainsFunc(p.words, func(word string) bool {
		namespace, name, both := strings.Cut(word, "/")
		return matches(namespace, service.Namespace) && (!both || matches(name, service.Name))
	})
}

func matches(pattern, name string) bool {
	matched, err := path.Match(pattern, name)
	return err == nil && matched
}

// String returns the patterns, separated by commas.
func (p Patterns) String() string { return strings.Join(p.words, ",") }

// An Admission decides which services of members are imported. The zero value admits none.
type Admission struct {
	// Denied are path.Match patterns of namespaces that are neither exported nor imported.
	Denied []string
	// Accept are the patterns for members without their own.
	Accept Patterns
}

// Denies reports whether a namespace takes no part in the cluster set.
func (a Admission) Denies(namespace string) bool {
	return slices.ContainsFunc(a.Denied, func(pattern string) bool { return matches(pattern, namespace) })
}

// Refusal returns the reason why a service of a member is not imported, empty if it is. own are the patterns of the member,
// nil if it has none. labelled reports whether the namespace has AcceptLabel.
func (a Admission) Refusal(service types.NamespacedName, own *Patterns, labelled bool) (reason string) {
	switch {
	case own != nil && own.Accepts(service), own == nil && (labelled || a.Accept.Accepts(service)):
		return ""
	case own != nil:
		return fmt.Sprintf("annotation %s of its Secret has %q", AcceptAnnotation, own)
	}
	return fmt.Sprintf("--accept has %q, and its namespace lacks the label %s=true", a.Accept, AcceptLabel)
}
