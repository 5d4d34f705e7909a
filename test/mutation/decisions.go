// SPDX-License-Identifier: Apache-2.0

package main

// deciding are mistakes in what exports become.
var deciding = []mutant{
	{
		file: "controller/merge/ports.go",
		text: `for i := 2; taken[free]; i++ {`, replacement: `for i := 2; false && taken[free]; i++ {`,
		harm: "two ports of an import have the same name, and the API server refuses it",
	},
	{
		file: "controller/export/service.go",
		text: `case serviceExport.DeletionTimestamp != nil:`, replacement: `case false && serviceExport.DeletionTimestamp != nil:`,
		harm: "an export that is being deleted stays in all clusters while a finalizer holds it",
	},
	{
		file: "controller/liveness/arrivals.go",
		text: `if a.Missed >= limits.StaleAfter {`, replacement: `if at.Sub(from) >= limits.StaleAfter {`,
		harm: "after three faults of its own network, a cluster demotes all others for flapping",
	},
	{
		file: "controller/liveness/view.go",
		text: `			discoveryv1.AddressTypeIPv6,`, replacement: ``,
		harm: "an IPv6 slice that cannot be read takes its last endpoints away",
	},
	{
		file: "controller/apply/slices.go",
		text: `export.LabelHeadless, export.LabelExposed,`, replacement: `export.LabelExposed,`,
		harm: "kube-proxy ignores the slices of an import that was headless",
	},
	{
		file: "controller/placement/weights.go",
		text: `min(max((2*weight*scale+of)/(2*of), 1), n)`, replacement: `min((2*weight*scale+of)/(2*of), n)`,
		harm: "a cluster with a small weight gets no traffic",
	},
	{
		file: "controller/scope/selector.go",
		text: `return cluster.ID == local.ID || known`, replacement: `return known`,
		harm: "a tier of the same region lacks the local cluster while its properties are unknown",
	},
	{
		file: "controller/merge/serviceimport.go",
		text: `slices.Index(common, first); at > 0`, replacement: `slices.Index(common, first); at > 9`,
		harm: "the IP of a dual-stack import changes with the order of the exports' families",
	},
	{
		file: "controller/merge/merge.go",
		text: `return before != nil && before.Spec.Type`, replacement: `return false && before.Spec.Type`,
		harm: "a name does not resolve while its import becomes one with an IP",
	},
	{
		file: "controller/merge/demote.go",
		text: `v1beta1.Headless && !c.before(of`, replacement: `v1beta1.Headless && of == 0 && !c.before(of`,
		harm: "the last endpoints of a headless service without ports are demoted",
	},
	{
		file: "controller/merge/conflict.go",
		text: `(kind == v1beta1.Headless && lacks(used, has))`, replacement: `(kind == "" && lacks(used, has))`,
		harm: "a conflict of the families of a headless service is not reported",
	},
	{
		file: "controller/export/slices.go",
		text: `if r.refused[slice.Name] && !r.names[slice.Name] {`, replacement: `if r.refused[slice.Name] {`,
		harm: "endpoints are there twice while a second slice with their name cannot be read",
	},
	{
		file: "controller/apply/slices.go",
		text: `		case err != nil:
			late.add(`, replacement: `		case err != nil:
			behind{}.add(`,
		harm: "old slices are deleted although the new ones could not be written",
	},
}
