// SPDX-License-Identifier: Apache-2.0

// Package scope decides which clusters an export is for, and which services of members are imported: patterns of services
// and of denied namespaces, selectors of clusters, and the ClusterProperties (KEP-2149) that selectors look at.
//
// The package is pure. docs/design.md#scope describes the formats, docs/use/export-services.md the terms of selectors.
package scope

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// AcceptAnnotation on a member's Secret has the patterns of what the member may contribute.
	AcceptAnnotation = "clusterset-dns.github.io/accept"
	// AcceptLabel on a namespace, with the value "true", accepts its services of members without patterns of their own.
	AcceptLabel = AcceptAnnotation
	// AcceptsAnnotation on the heartbeat has the Policy of the cluster.
	AcceptsAnnotation = "clusterset-dns.github.io/accepts"
	// MaxBytes bounds the text of patterns, of a policy, and of the properties of a cluster.
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

// ParsePatterns returns the patterns of a text, which are separated by commas: namespace, or namespace/service, with * and
// ?. The empty text has none.
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
	slices.Sort(parsed.words)
	parsed.words = slices.Compact(parsed.words)
	return parsed, nil
}

// With returns the patterns and those namespaces.
func (p Patterns) With(namespaces []string) Patterns {
	words := slices.Concat(p.words, namespaces)
	slices.Sort(words)
	return Patterns{slices.Compact(words)}
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

// All reports whether the pattern Everything is among the patterns.
func (p Patterns) All() bool { return slices.Contains(p.words, Everything) }

// Equal reports whether two have the same patterns.
func (p Patterns) Equal(other Patterns) bool { return slices.Equal(p.words, other.words) }

// String returns the patterns, sorted and separated by commas.
func (p Patterns) String() string { return strings.Join(p.words, ",") }

// An Admission decides which services of members are imported. The zero value admits none.
type Admission struct {
	// Denied are patterns, as of path.Match, of namespaces that are neither exported nor imported.
	Denied []string
	// Accept are the patterns for members without patterns of their own.
	Accept Patterns
}

// Denies reports whether a namespace takes no part in the cluster set.
func (a Admission) Denies(namespace string) bool {
	return slices.ContainsFunc(a.Denied, func(pattern string) bool { return matches(pattern, namespace) })
}

// Admit returns the rule by which a service of a member is not imported, empty if it is. own are the patterns of the
// member, nil for none, and labelled is whether the namespace has AcceptLabel.
func (a Admission) Admit(service types.NamespacedName, own *Patterns, labelled bool) (reason string) {
	switch {
	case own != nil && own.Accepts(service), own == nil && (labelled || a.Accept.Accepts(service)):
		return ""
	case own != nil:
		return fmt.Sprintf("annotation %s of its Secret has %q", AcceptAnnotation, own)
	}
	return fmt.Sprintf("--accept has %q, and its namespace lacks the label %s=true", a.Accept, AcceptLabel)
}

// A Policy is what a cluster accepts of its members. The zero value accepts nothing.
type Policy struct {
	// Others are for members without patterns of their own.
	Others Patterns
	// Members have patterns of their own, by id.
	Members map[string]Patterns
}

// Of returns the patterns for a member.
func (p Policy) Of(member string) Patterns {
	if own, found := p.Members[member]; found {
		return own
	}
	return p.Others
}

// Encode returns the text of a policy, empty if it accepts everything: a JSON object with the patterns of each member,
// those of the others as "*". The text is longer than MaxBytes if there are too many.
func (p Policy) Encode() string {
	texts := map[string]string{}
	for member, patterns := range p.Members {
		if !patterns.All() || !p.Others.All() {
			texts[member] = patterns.String()
		}
	}
	if len(texts) == 0 && p.Others.All() {
		return ""
	}
	texts[Everything] = p.Others.String()
	text, err := json.Marshal(texts)
	if err != nil {
		panic(err) // strings can always be encoded
	}
	return string(text)
}

// DecodePolicy is the inverse of Policy.Encode.
func DecodePolicy(text string) (Policy, error) {
	if text == "" {
		return Policy{Others: AllServices}, nil
	}
	if len(text) > MaxBytes {
		return Policy{}, fmt.Errorf("annotation %s has more than %d bytes", AcceptsAnnotation, MaxBytes)
	}
	var texts map[string]string
	if err := json.Unmarshal([]byte(text), &texts); err != nil {
		return Policy{}, fmt.Errorf("annotation %s: %w", AcceptsAnnotation, err)
	}
	policy := Policy{Members: map[string]Patterns{}}
	for member, text := range texts {
		patterns, err := ParsePatterns(text)
		if err != nil {
			return Policy{}, fmt.Errorf("annotation %s: %w", AcceptsAnnotation, err)
		}
		if member == Everything {
			policy.Others = patterns
			continue
		}
		policy.Members[member] = patterns
	}
	return policy, nil
}
