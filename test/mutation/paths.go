// SPDX-License-Identifier: Apache-2.0

package main

// probing are mistakes in what is concluded from probes of the pod network, and in what the own heartbeat depends on.
var probing = []mutant{
	{
		file: "controller/local/cluster.go",
		text: `		if each == c.Nodes {`, replacement: `		if each == nil {`,
		harm:  "a cluster whose controller may not list nodes publishes nothing",
		first: "-run=TestStarts " + simulation,
	},
	{
		file:        "controller/liveness/judge.go",
		text:        `now.Sub(member.Arrivals.silentFrom()) >= limits.StaleAfter:`,
		replacement: `member.Arrivals.Missed >= limits.StaleAfter:`,
		harm:        "a cluster that lost all others keeps sending traffic to them",
	},
	{
		file: "controller/liveness/arrivals.go",
		text: `isolated && number > 1`, replacement: `isolated && number > 1000`,
		harm: "a cluster that lost all others removes or mistrusts them",
	},
	{
		file: "controller/liveness/judge.go",
		text: `if opinion.State > verdict.State {`, replacement: `if opinion.State > verdict.State && limits.StaleAfter == 0 {`,
		harm: "half of all connections fail for as long as the pods of a member are not reached",
	},
	{
		file: "controller/canary/paths.go",
		text: `most := 2*cut > len(m.canaries)`, replacement: `most := cut > 0`,
		harm: "a cluster that loses a node is demoted",
	},
	{
		file: "controller/canary/verdict.go",
		text: `		v.answers, v.unanswered = 0, 0
`, replacement: `		v.answers = 0
		v.unanswered++
		v.cut = v.cut || v.unanswered >= 30
`,
		harm: "any pod that keeps a prober target busy demotes its cluster in all others",
	},
	{
		file: "controller/canary/serve.go",
		text: ` || s.of[source] >= perSource`, replacement: ``,
		harm: "any pod that opens connections keeps a prober target from answering",
	},
	{
		file:        "controller/canary/prober.go",
		text:        `!hmac.Equal(answer, answerOf(t.cluster, t.key, asked))`,
		replacement: `!hmac.Equal(answer[:24], answerOf(t.cluster, t.key, asked)[:24])`,
		harm:        "any program at an address pretends that it is a prober target of a member",
	},
	{
		file: "controller/canary/canary.go",
		text: `if len(nodes) == 1 {`, replacement: `if len(nodes) == 0 {`,
		harm: "a cut of the pod network of a cluster with one node is noticed after 30 s",
	},
	{
		file: "controller/canary/prober.go",
		text: `interval = 750 * time.Millisecond`, replacement: `interval = 1500 * time.Millisecond`,
		harm: "traffic leaves a member that is cut off after more than 5 s",
	},
	{
		file: "controller/canary/prober.go",
		text: `		outcome = Impaired
`, replacement: `		_ = Impaired
`,
		harm: "a controller that starves demotes others",
	},
}
