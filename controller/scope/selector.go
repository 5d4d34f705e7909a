// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

const (
	// MaxSelector bounds the text of a selector, in bytes.
	MaxSelector = 1024
	// separator is between the terms of a selector.
	separator = ";"
	// local is the term that selects the cluster that evaluates it.
	local = "local"
)

// A Cluster has the id and the properties of a cluster, for selectors.
type Cluster struct {
	// ID is the id of the cluster.
	ID string
	// Properties are its ClusterProperties by name, nil while they are unknown. No label selector selects the cluster
	// then, not even a negative one.
	Properties map[string]string
}

// A Selector selects clusters. The zero value selects none. It is immutable.
type Selector struct {
	text  string
	terms []term
}

// A term reports whether it applies to a cluster, as seen from the local one.
type term func(cluster, local Cluster) bool

var (
	id   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)?$`)
	same = regexp.MustCompile(`^same\(\s*([^()\s]+)\s*\)$`)
)

// ParseSelector returns the selector of a text: terms separated by semicolons, at most MaxSelector bytes. A term of ids that are
// separated by commas is an error: as a label selector, it would select clusters that have properties of these names.
func ParseSelector(text string) (Selector, error) {
	if len(text) > MaxSelector {
		return Selector{}, fmt.Errorf("the cluster selector has %d bytes: use at most %d", len(text), MaxSelector)
	}
	parsed := Selector{text: text}
	for part := range strings.SplitSeq(text, separator) {
		part = strings.TrimSpace(part)
		one, err := parseTerm(part)
		if isList(part) {
			err = errList
		}
		if err != nil {
			return Selector{}, fmt.Errorf("cluster selector, term %.63q: %w", part, err)
		}
		parsed.terms = append(parsed.terms, one)
	}
	return parsed, nil
}

// ParseAbsolute is ParseSelector, but rejects the terms local and same, which mean other clusters in each cluster.
func ParseAbsolute(text string) (Selector, error) {
	for part := range strings.SplitSeq(text, separator) {
		if part = strings.TrimSpace(part); part == local || same.MatchString(part) {
			return Selector{}, fmt.Errorf("cluster selector, term %.63q: it has another meaning in each cluster; "+
				"use ids and properties", part)
		}
	}
	return ParseSelector(text)
}

var errList = fmt.Errorf("it has ids separated by commas: separate them with %q", separator)

// isList reports whether a term is a list of ids, same(...) or *, separated by commas.
func isList(text string) bool {
	parts := strings.Split(text, ",")
	return len(parts) > 1 && !slices.ContainsFunc(parts, func(part string) bool {
		part = strings.TrimSpace(part)
		return part != Everything && !id.MatchString(part) && !same.MatchString(part)
	})
}

func parseTerm(text string) (term, error) {
	switch {
	case text == "":
		return nil, fmt.Errorf("it is empty: use an id, a label selector, * or local")
	case text == Everything:
		return func(Cluster, Cluster) bool { return true }, nil
	case text == local:
		return func(cluster, local Cluster) bool { return cluster.ID == local.ID }, nil
	case id.MatchString(text):
		return func(cluster, _ Cluster) bool { return cluster.ID == text }, nil
	}
	if found := same.FindStringSubmatch(text); found != nil {
		property := found[1]
		return func(cluster, local Cluster) bool {
			value, known := cluster.Properties[property]
			wanted, here := local.Properties[property]
			return cluster.ID == local.ID || known && here && value == wanted
		}, nil
	}
	matches, err := labels.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("it is neither an id nor a label selector: %w", err)
	}
	return func(cluster, _ Cluster) bool {
		return cluster.Properties != nil && matches.Matches(labels.Set(cluster.Properties))
	}, nil
}

// Selects reports whether the selector selects the cluster, as seen from the local one. Only the term * selects a cluster
// without id and properties, unless it is the local cluster.
func (s Selector) Selects(cluster, local Cluster) bool {
	return slices.ContainsFunc(s.terms, func(applies term) bool { return applies(cluster, local) })
}

// String returns the text of the selector.
func (s Selector) String() string { return s.text }
