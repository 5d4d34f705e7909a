// SPDX-License-Identifier: Apache-2.0

package memberstate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// TestOrigin: the next leader knows the member of a source, and the annotations of any member, by its Lease.
func TestOrigin(t *testing.T) {
	is := &member.Candidate{
		Cluster: "west", Source: "clusterprofile:x", Kind: "ClusterProfile", Name: "x/west",
		Annotations: map[string]string{member.RankAnnotation: "2", AnnotationDrain: "true", AnnotationConfirm: "x"},
	}
	left := memory{}
	held := &member.Candidate{Cluster: "west", Kind: "Secret", Name: "clusterset-dns/member-west", Object: &corev1.Secret{}}
	noteOrigin(left, held)
	if got := candidateOf("west", left); got == nil || got.Source != "" || got.String() != held.String() {
		t.Errorf("%v is %+v, want %+v", left, got, held)
	}
	noteOrigin(left, is)
	got := candidateOf("west", left)
	if got == nil || got.Cluster != is.Cluster || got.Source != is.Source || got.String() != is.String() ||
		len(got.Annotations) != 2 || got.Annotations[AnnotationDrain] != "true" {
		t.Errorf("%v is %+v, want %+v", left, got, is)
	}
}

// FuzzParseOrigin: a valid origin has all parts.
func FuzzParseOrigin(f *testing.F) {
	f.Add("clusterprofile:fleet ClusterProfile fleet/west")
	f.Add("a b")
	f.Add("a  b")
	f.Add("a b c d")
	f.Fuzz(func(t *testing.T, text string) {
		source, kind, name := ParseOrigin(text)
		if (source == "") != (kind == "") || (source == "") != (name == "") {
			t.Errorf("%q is %q, %q, %q", text, source, kind, name)
		}
		if source != "" && source+" "+kind+" "+name != text {
			t.Errorf("%q is %q, %q, %q", text, source, kind, name)
		}
	})
}
