// SPDX-License-Identifier: Apache-2.0

package memberstate

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// remembered are the annotations of a member that stay in force while its source cannot be read after a restart.
var remembered = []string{member.CIDRsAnnotation, member.RankAnnotation, scope.AcceptAnnotation, AnnotationDrain}

// secrets is the source of Secrets with member.ClusterLabel in OriginAnnotation.
const secrets = "-"

// noteOrigin notes the origin of a member, so that the next leader prefers it to another candidate with the same id, and
// knows the member and its annotations if the source cannot be read.
func noteOrigin(memory map[string]string, candidate *member.Candidate) {
	memory[OriginAnnotation] = cmp.Or(candidate.Source, secrets) + " " + candidate.Kind + " " + candidate.Name
	maps.Copy(memory, rememberedOf(candidate.Annotations))
}

func rememberedOf(annotations map[string]string) map[string]string {
	annotations = maps.Clone(annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool { return !slices.Contains(remembered, key) })
	return annotations
}

// ParseOrigin parses OriginAnnotation: the source, "-" for Secrets, and the kind and name of the object. All are
// empty if the text is not valid.
func ParseOrigin(text string) (source, kind, name string) {
	if words := strings.Split(text, " "); len(words) == 3 && !slices.Contains(words, "") {
		return words[0], words[1], words[2]
	}
	return "", "", ""
}

// candidateOf returns the candidate that the previous leader recorded, without its credential.
func candidateOf(cluster string, left memory) *member.Candidate {
	source, kind, name := ParseOrigin(left[OriginAnnotation])
	if source == secrets {
		source = ""
	}
	return &member.Candidate{
		Cluster: cluster, Source: source, Kind: kind, Name: name, Annotations: rememberedOf(left),
		Err: errors.New("its credential is not known: --members-from has not named it since the controller started"),
	}
}
