// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// A Reason is why something was left out. The set is fixed, so that it can label a metric.
type Reason string

// Reasons of problems, for messages and the metric. The reasons of conditions are at Invalid.
const (
	// ReasonBadSnapshot: a slice is not of its service and cluster, or its snapshot is missing, of an unknown version or invalid.
	ReasonBadSnapshot Reason = "BadSnapshot"
	// ReasonBadAddress: an address is invalid, of the wrong family, not in canonical form, or one that no pod can have.
	ReasonBadAddress Reason = "BadAddress"
	// ReasonForeignAddress: an address is outside of the annotation cidrs.
	ReasonForeignAddress Reason = "ForeignAddress"
	// ReasonBadEndpoint: another field of an endpoint is invalid, or a slice has too many endpoints.
	ReasonBadEndpoint Reason = "BadEndpoint"
	// ReasonBadMetadata: an exported label or annotation is invalid or reserved, or an annotation has no effect.
	ReasonBadMetadata Reason = "BadMetadata"
	// ReasonNotExposed: clusters of other networks do not reach the export.
	ReasonNotExposed Reason = "NotExposed"
)

// A Problem is what was left out of a view, and why. There is at most one for each reason and object.
type Problem struct {
	Reason Reason
	// Object is the kind and name of the object that caused it, as in "EndpointSlice demo/web-x7c2p", or an annotation of it.
	Object string
	// Message is one sentence about the first occurrence, at most 256 bytes.
	Message string
}

// String returns the problem as one sentence.
func (p Problem) String() string { return p.Object + ": " + p.Message }

// Invalid is why a ServiceExport contributes nothing. It becomes the condition Valid=False of the ServiceExport.
type Invalid struct {
	// Reason is a condition's reason: NoService and InvalidServiceType of the MCS API, or one of the constants here, or
	// reconciler.InvalidDenied.
	Reason string
	// Message is what is wrong and what to do.
	Message string
}

// Reasons of a ServiceExport that is not valid, beyond those of the MCS API.
const (
	// InvalidDeleted: the ServiceExport is being deleted.
	InvalidDeleted = "Deleted"
	// InvalidClusters: the annotation clusters is invalid, such as "east, west" without semicolons. No cluster gets the export.
	InvalidClusters = "InvalidClusters"
	// InvalidSpec: the Service is incomplete, or has more than 100 ports or more than 64 KiB of exported labels and annotations.
	InvalidSpec = "InvalidSpec"
)

// problems collects problems, one for each reason and object.
type problems struct {
	list  []Problem
	known sets.Set[Problem] // without messages
}

// maxMessage bounds a problem's message, which may quote other clusters' data.
const maxMessage = 256

func (p *problems) add(reason Reason, object, format string, args ...any) {
	problem := Problem{Reason: reason, Object: object}
	if p.known.Has(problem) {
		return
	}
	if p.known == nil {
		p.known = sets.Set[Problem]{}
	}
	p.known.Insert(problem)
	problem.Message = Cut(fmt.Sprintf(format, args...), maxMessage)
	p.list = append(p.list, problem)
}

// Cut shortens a text to the given number of bytes, at least three. A shortened text ends in "...".
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-3], "") + "..."
}

// maxListed bounds what a message lists.
const maxListed = 10

// Listed returns texts as a list for a message: at most ten of them, and the number of the others. It does not change texts.
func Listed(texts []string) string {
	if more := len(texts) - maxListed; more > 0 {
		texts = append(slices.Clone(texts[:maxListed]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(texts, ", ")
}
