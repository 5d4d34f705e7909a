// SPDX-License-Identifier: Apache-2.0

package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/selector"
)

// document is the format that docs/design.md#snapshot describes. Fields may be added where a reader that does not know
// them may ignore them without harm; every other change makes another version of AnnotationSnapshot.
type document struct {
	Cluster  string          `json:"cluster"`
	Clusters string          `json:"clusters,omitempty"`
	Absent   bool            `json:"absent,omitempty"`
	Service  json.RawMessage `json:"service,omitempty"`
	Slice    sliceDocument   `json:"slice"`
}

type serviceDocument struct {
	Created               string                              `json:"created"`
	Type                  v1beta1.ServiceImportType           `json:"type"`
	Ports                 []portDocument                      `json:"ports,omitempty"`
	IPFamilies            []corev1.IPFamily                   `json:"ipFamilies"`
	SessionAffinity       corev1.ServiceAffinity              `json:"sessionAffinity,omitempty"`
	SessionAffinityConfig *corev1.SessionAffinityConfig       `json:"sessionAffinityConfig,omitempty"`
	InternalTrafficPolicy corev1.ServiceInternalTrafficPolicy `json:"internalTrafficPolicy,omitempty"`
	TrafficDistribution   string                              `json:"trafficDistribution,omitempty"`
	Labels                map[string]string                   `json:"labels,omitempty"`
	Annotations           map[string]string                   `json:"annotations,omitempty"`
	Saturated             bool                                `json:"saturated,omitempty"`
}

type portDocument struct {
	Name        string          `json:"name,omitempty"`
	Protocol    corev1.Protocol `json:"protocol"`
	Port        int32           `json:"port"`
	AppProtocol string          `json:"appProtocol,omitempty"`
}

type sliceDocument struct {
	Name    string             `json:"name"`
	Targets []targetDocument   `json:"targets,omitempty"`
	Demoted []demotionDocument `json:"demoted,omitempty"`
}

type targetDocument struct {
	Protocol corev1.Protocol `json:"protocol"`
	Port     int32           `json:"port"`
	Target   int32           `json:"target"`
}

type demotionDocument struct {
	Endpoints   []int `json:"endpoints"`
	Serving     *bool `json:"serving,omitempty"`
	Terminating bool  `json:"terminating,omitempty"`
}

// encode returns the snapshot of a slice of the encoder's view.
func (e *Encoder) encode(slice *Slice, demoted []demotion) string {
	out := document{
		Cluster: e.view.Cluster, Clusters: slice.Clusters, Absent: e.view.Absent(), Service: e.service,
		Slice: sliceDocument{Name: slice.Name},
	}
	for _, target := range slice.Targets {
		out.Slice.Targets = append(out.Slice.Targets, targetDocument{target.Protocol, target.Number, target.Port})
	}
	for _, group := range demoted {
		encoded := demotionDocument{Endpoints: group.endpoints, Terminating: group.terminating}
		if !group.serving {
			encoded.Serving = condition(false)
		}
		out.Slice.Demoted = append(out.Slice.Demoted, encoded)
	}
	return string(marshal(out))
}

func encodeService(spec *Spec) json.RawMessage {
	service := serviceDocument{
		Created:               spec.Created.Format(time.RFC3339),
		Type:                  spec.Type,
		IPFamilies:            spec.IPFamilies,
		SessionAffinity:       spec.SessionAffinity,
		SessionAffinityConfig: spec.SessionAffinityConfig,
		InternalTrafficPolicy: spec.InternalTrafficPolicy,
		TrafficDistribution:   spec.TrafficDistribution,
		Labels:                spec.Labels,
		Annotations:           spec.Annotations,
		Saturated:             spec.Saturated,
	}
	for _, port := range spec.Ports {
		service.Ports = append(service.Ports, portDocument{port.Name, port.Protocol, port.Number, port.AppProtocol})
	}
	return marshal(service)
}

// decode is the inverse of encode. It checks only the syntax.
func decode(text string) (snapshot, error) {
	var in document
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		return snapshot{}, syntaxError(err)
	}
	out := snapshot{cluster: in.Cluster, absent: in.Absent, name: in.Slice.Name}
	if in.Clusters != "" {
		clusters, err := selector.ParseAbsolute(in.Clusters)
		if err != nil {
			return snapshot{}, syntaxError(err)
		}
		if !clusters.All() {
			out.clusters = clusters
		}
	}
	out.specText = in.Service
	out.spec = func() (Spec, error) { return decodeService(in.Service) }
	for _, target := range in.Slice.Targets {
		out.targets = append(out.targets, Target{target.Protocol, target.Port, target.Target})
	}
	for _, group := range in.Slice.Demoted {
		out.demoted = append(out.demoted, demotion{group.Endpoints, isTrue(group.Serving, true), group.Terminating})
	}
	return out, nil
}

func decodeService(raw json.RawMessage) (Spec, error) {
	if len(raw) == 0 {
		return Spec{}, errors.New("it has no service")
	}
	var in serviceDocument
	if err := json.Unmarshal(raw, &in); err != nil {
		return Spec{}, syntaxError(err)
	}
	created, err := time.Parse(time.RFC3339, in.Created)
	if err != nil {
		return Spec{}, fmt.Errorf("its creation time %.100q is not one of RFC 3339", in.Created)
	}
	spec := Spec{
		Created:               created,
		Type:                  in.Type,
		IPFamilies:            in.IPFamilies,
		SessionAffinity:       in.SessionAffinity,
		SessionAffinityConfig: in.SessionAffinityConfig,
		InternalTrafficPolicy: in.InternalTrafficPolicy,
		TrafficDistribution:   in.TrafficDistribution,
		Labels:                in.Labels,
		Annotations:           in.Annotations,
		Saturated:             in.Saturated,
	}
	for _, port := range in.Ports {
		spec.Ports = append(spec.Ports, Port{port.Name, port.Protocol, port.Port, port.AppProtocol})
	}
	return spec, nil
}

// ClustersOf returns the cluster selector in the snapshot of a published slice, empty if the slice is for all clusters or
// cannot be read.
func ClustersOf(slice *discoveryv1.EndpointSlice) string {
	decoded, _, err := readSnapshot(slice.Annotations)
	if err != nil {
		return ""
	}
	return decoded.clusters.String()
}

// syntaxError replaces errors of the decoder that quote the text at any length.
func syntaxError(err error) error {
	text := err.Error()
	if len(text) > 200 {
		text = text[:200] + "..."
	}
	return errors.New(text)
}
