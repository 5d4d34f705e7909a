// SPDX-License-Identifier: Apache-2.0

package main

// trusting are mistakes with credentials.
var trusting = []mutant{
	at("controller/member/token.go", "a member replaces its credential with a token of another account",
		`t.Account == other.Account &&`, ``),
	at("controller/member/credential.go", "the kubeconfig in a Secret reads a file",
		`user.TokenFile != "" || `, ``),
	at("controller/member/registration.go", "an empty annotation lifts the restriction of a member to its ranges",
		`if len(cidrs) == 0 {`, `if false {`),
	at("controller/limits/store.go", "a member exceeds its limits by slices that it breaks, whose copies stay",
		`	is.least = copies
`, ``),
	at("controller/probe/probe.go", "a member without ranges has every reader connect to addresses of its choice",
		`if slices.ContainsFunc(ranges`, `if len(ranges) == 0 || slices.ContainsFunc(ranges`),
	at("controller/member/poll.go", "an inventory that cannot be read removes all its members",
		`			continue
`, `			r.known, changed = nil, true
			continue
`),
	at("controller/member/poll.go", "an inventory that is empty once removes all its members",
		`!errors.Is(r.err, errVanished)`, `errors.Is(r.err, errVanished)`),
	at("controller/clusterprofile/clusterprofile.go", "an inventory has the controller send the token of another member",
		`id == "" || secret.Labels[tokenOfLabel] != id`, `id == ""`),
	at("controller/clusterprofile/clusterprofile.go", "an inventory has the controller send a token to another server",
		`server == "" || secret.Annotations[serverAnnotation] != server`, `server == ""`),
	at("controller/member/candidate.go", "an object of an inventory takes the id of a member, and lifts its limits",
		`			rank = 2`, `			rank = 0`),
	at("controller/member/candidate.go", "a second Secret takes the id of a member that is connected",
		`was == nil || was.key() != c.key() {`, `c.Source == "" || was == nil || was.key() != c.key() {`),
	at("controller/member/candidate.go", "a Secret takes the id of another member by a mistaken label",
		`was == nil || was.key() != c.key() {`, `was == nil {`),
	at("controller/member/renew.go", "a token is renewed at its end, when it is not accepted anymore",
		`has.Issued.Add(has.length() / 2)`, `has.Expires`),
	at("controller/member/token.go", "a reader requests tokens of an account that is not its own",
		`strings.HasPrefix(t.Account, AccountPrefix) &&`, `strings.HasPrefix(t.Account, "") &&`),
	at("controller/member/renew.go", "the renewal of tokens writes to the Secret of an inventory",
		`ok && candidate.Source == ""`, `ok`),
}

// probing are mistakes in conclusions from probes of the pod network, and in the conditions for the own heartbeat.
var probing = []mutant{
	at("controller/local/cluster.go", "a cluster whose controller may not list nodes publishes nothing",
		` || time.Now().After(c.nodesUntil)`, ``, "TestStarts"),
	at("controller/liveness/judge.go", "a cluster that lost all others keeps sending traffic to them",
		`now.Sub(member.Arrivals.gapFrom()) >= limits.StaleAfter:`, `member.Arrivals.Missed >= limits.StaleAfter:`),
	at("controller/liveness/arrivals.go", "a cluster that lost all others removes or mistrusts them",
		`len(members) > 1`, `len(members) > 1000`),
	at("controller/liveness/judge.go", "half of all connections fail for as long as the pods of a member are not reached",
		`case member.Path == Unreachable:`, `case member.Path == Unreachable && limits.StaleAfter == 0:`),
	at("controller/liveness/path.go", "a cluster that loses a node is demoted",
		`most := 2*cut > len(m.ProbedTargets)`, `most := cut > 0`),
	at("controller/liveness/path.go", "any pod that keeps a probe target busy demotes its cluster in all others",
		`		w.answers, w.unanswered = 0, 0
`, `		w.answers = 0
		w.unanswered++
		w.Fails = w.Fails || w.unanswered >= 30
`),
	at("controller/probe/serve.go", "any pod that opens connections keeps a probe target from answering",
		`_ = oldest.Close() //`, `_ = conn.Close() //`),
	at("controller/probe/prober.go", "any program at an address pretends that it is a probe target of a member",
		`!hmac.Equal(answer, answerOf(t.Cluster, t.Key, asked))`, `!hmac.Equal(answer[:24], answerOf(t.Cluster, t.Key, asked)[:24])`),
	at("controller/probe/prober.go", "traffic leaves a member that is cut off after more than 5 s",
		`interval = 750 * time.Millisecond`, `interval = 1500 * time.Millisecond`),
	at("controller/probe/prober.go", "a controller that starves demotes others",
		`		outcome = liveness.Impaired
`, `		_ = liveness.Impaired
`),
}
