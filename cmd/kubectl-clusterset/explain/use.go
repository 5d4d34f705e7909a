// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
	"github.com/clusterset-dns/clusterset-dns/controller/traffic"
)

// count counts the endpoints of each export by their state.
func (e *Explanation) count() {
	for i := range e.Exports {
		out := &e.Exports[i]
		for _, endpoint := range e.Endpoints {
			switch {
			case endpoint.Cluster != out.Cluster:
			case endpoint.State == Used:
				out.Used++
			case endpoint.State == Demoted:
				out.Demoted++
			default:
				out.Other++
			}
		}
	}
}

// wait marks the endpoints that hints keep waiting: kube-proxy uses those without a local zone or node only if none
// with one is ready. It ignores all hints if a ready endpoint has none.
func (e *Explanation) wait() {
	var first []string
	for _, each := range e.Endpoints {
		switch {
		case each.State != Used:
		case each.HintedFor == "":
			return
		case each.HintedFor != noLocalZone && !slices.Contains(first, each.Cluster):
			first = append(first, each.Cluster)
		}
	}
	for i := range e.Endpoints {
		if each := &e.Endpoints[i]; each.State == Used && each.HintedFor == noLocalZone && len(first) > 0 {
			each.State = Waiting
			each.Reason = "hints put " + strings.Join(first, " and ") + " first: used only if no endpoint there is ready"
		}
	}
}

// shares adds what weights yield to the rules of each export: its part of the endpoints that are used.
func (e *Explanation) shares(roles map[string]merge.Role, serviceImport *v1beta1.ServiceImport) {
	if serviceImport == nil || !export.IsManaged(serviceImport) || serviceImport.Spec.Type == v1beta1.Headless {
		return
	}
	weights, err := traffic.ParseWeights(serviceImport.Annotations[export.AnnotationWeights])
	if err != nil || weights == nil {
		return
	}
	for i := range e.Exports {
		out := &e.Exports[i]
		if role, decided := roles[out.Cluster]; !decided || role.Outside {
			continue
		}
		var texts []string
		for _, family := range []string{"IPv4", "IPv6"} {
			used, all := 0, 0
			for _, each := range e.Endpoints {
				if each.State != Used || (family == "IPv6") != strings.Contains(each.Address, ":") {
					continue
				}
				if all++; each.Cluster == out.Cluster {
					used++
				}
			}
			if all > 0 {
				texts = append(texts, fmt.Sprintf("share %.0f %% of %s", 100*float64(used)/float64(all), family))
			}
		}
		if len(texts) == 1 {
			texts[0], _, _ = strings.Cut(texts[0], " of ")
		}
		out.Rules = append(slices.Clone(out.Rules), texts...)
	}
}
