// SPDX-License-Identifier: Apache-2.0

package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// version1 is the format that docs/design/snapshot.md describes. Fields may be added where older readers may ignore
// them without harm; every other change makes a new version.
var version1 = version{
	name: "v1", encoder: encoder1, decode: decode1, writes: func(slice *Slice) bool { return slice.Clusters == "" },
}

type document1 struct {
	Cluster string          `json:"cluster"`
	Absent  bool            `json:"absent"`
	Service json.RawMessage `json:"service"`
	Slice   slice1          `json:"slice"`
}

type service1 struct {
	Created               string                              `json:"created"`
	Type                  v1beta1.ServiceImportType           `json:"type"`
	Ports                 []port1                             `json:"ports,omitempty"`
	IPFamilies            []corev1.IPFamily                   `json:"ipFamilies"`
	SessionAffinity       corev1.ServiceAffinity              `json:"sessionAffinity,omitempty"`
	SessionAffinityConfig *corev1.SessionAffinityConfig       `json:"sessionAffinityConfig,omitempty"`
	InternalTrafficPolicy corev1.ServiceInternalTrafficPolicy `json:"internalTrafficPolicy,omitempty"`
	TrafficDistribution   string                              `json:"trafficDistribution,omitempty"`
	Labels                map[string]string                   `json:"labels,omitempty"`
	Annotations           map[string]string                   `json:"annotations,omitempty"`
	Saturated             bool                                `json:"saturated,omitempty"`
}

type port1 struct {
	Name        string          `json:"name,omitempty"`
	Protocol    corev1.Protocol `json:"protocol"`
	Port        int32           `json:"port"`
	AppProtocol string          `json:"appProtocol,omitempty"`
}

type slice1 struct {
	Name    string      `json:"name"`
	Targets []target1   `json:"targets,omitempty"`
	Demoted []demotion1 `json:"demoted,omitempty"`
}

type target1 struct {
	Protocol corev1.Protocol `json:"protocol"`
	Port     int32           `json:"port"`
	Target   int32           `json:"target"`
}

type demotion1 struct {
	Endpoints   []int `json:"endpoints"`
	Serving     *bool `json:"serving,omitempty"`
	Terminating bool  `json:"terminating,omitempty"`
}

func encoder1(view *View) func(*Slice, []demotion) string {
	// The documents of all slices have the same beginning, which is encoded once.
	beginning := fmt.Sprintf(`{"cluster":%s,"absent":true,"slice":`, marshal(view.Cluster))
	if !view.Absent() {
		beginning = fmt.Sprintf(`{"cluster":%s,"service":%s,"slice":`, marshal(view.Cluster),
			marshal(encodeService1(view.Spec)))
	}
	return func(slice *Slice, demoted []demotion) string {
		out := slice1{Name: slice.Name}
		for _, target := range slice.Targets {
			out.Targets = append(out.Targets, target1{target.Protocol, target.Number, target.Port})
		}
		for _, group := range demoted {
			encoded := demotion1{Endpoints: group.endpoints, Terminating: group.terminating}
			if !group.serving {
				encoded.Serving = condition(false)
			}
			out.Demoted = append(out.Demoted, encoded)
		}
		return beginning + string(marshal(out)) + "}"
	}
}

func encodeService1(spec *Spec) service1 {
	service := service1{
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
		service.Ports = append(service.Ports, port1{port.Name, port.Protocol, port.Number, port.AppProtocol})
	}
	return service
}

func decode1(text string) (snapshot, error) {
	var in document1
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		return snapshot{}, syntaxError(err)
	}
	out := snapshot{cluster: in.Cluster, absent: in.Absent, name: in.Slice.Name}
	out.specText = in.Service
	out.spec = func() (Spec, error) { return decodeService1(in.Service) }
	for _, target := range in.Slice.Targets {
		out.targets = append(out.targets, Target{target.Protocol, target.Port, target.Target})
	}
	for _, group := range in.Slice.Demoted {
		out.demoted = append(out.demoted, demotion{group.Endpoints, isTrue(group.Serving, true), group.Terminating})
	}
	return out, nil
}

func decodeService1(raw json.RawMessage) (Spec, error) {
	if len(raw) == 0 {
		return Spec{}, errors.New("it has no service")
	}
	var in service1
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

// syntaxError replaces errors of the decoder that quote the text at any length.
func syntaxError(err error) error {
	text := err.Error()
	if len(text) > 200 {
		text = text[:200] + "..."
	}
	return errors.New(text)
}
