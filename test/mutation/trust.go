// SPDX-License-Identifier: Apache-2.0

package main

// trusting are mistakes with credentials.
var trusting = []mutant{
	{
		file: "controller/member/token.go",
		text: `t.Account == other.Account &&`, replacement: ``,
		harm: "a member replaces its credential with a token of another account",
	},
	{
		file: "controller/member/credential.go",
		text: `credential.Config.ExecProvider != nil {`, replacement: `credential.Config.ExecProvider != nil && false {`,
		harm: "the kubeconfig of a file runs a program",
	},
	{
		file: "controller/member/source.go",
		text: `if len(cidrs) == 0 {`, replacement: `if false {`,
		harm: "an empty annotation lifts the restriction of a member to its ranges",
	},
	{
		file: "controller/limits/account.go",
		text: `a.count(func() { a.keep(service, copies) })`, replacement: `a.count(func() {})`,
		harm:  "a member exceeds its limits by slices that it breaks, whose copies stay",
		first: "-run=TestScenarios/a_member_breaks_what " + simulation,
	},
	{
		file: "controller/canary/prober.go",
		text: `return !slices.ContainsFunc(cidrs`, replacement: `return len(cidrs) > 0 && !slices.ContainsFunc(cidrs`,
		harm: "a member without ranges has every reader connect to addresses of its choice",
	},
	{
		file: "controller/member/poll.go",
		text: `case r.listed:
		return false`, replacement: `case r.listed:
		r.known = nil
		return true`,
		harm: "an inventory that cannot be read removes all its members",
	},
	{
		file: "controller/member/poll.go",
		text: `empty && !r.empty &&`, replacement: `empty && !r.listed &&`,
		harm: "an inventory that is empty once removes all its members",
	},
	{
		file: "controller/member/profiletoken.go",
		text: `id == "" || secret.Labels[tokenOfLabel] != id`, replacement: `id == ""`,
		harm: "an inventory has the controller send the token of another member",
	},
	{
		file: "controller/member/profiletoken.go",
		text: `server == "" || secret.Annotations[serverAnnotation] != server`, replacement: `server == ""`,
		harm: "an inventory has the controller send a token to another server",
	},
	{
		file: "controller/member/candidate.go",
		text: `cmp.Compare(a.trust(), b.trust()), `, replacement: ``,
		harm: "an older object of an inventory takes the id of a member, and lifts its limits",
	},
	{
		file: "controller/member/candidate.go",
		text: `		if members[c.key()] {`, replacement: `		if c.Object == nil && members[c.key()] {`,
		harm: "a second Secret takes the id of a member that is connected",
	},
	{
		file: "controller/member/renew.go",
		text: `has.Issued.Add(has.length() / 2)`, replacement: `has.Expires`,
		harm: "a token is renewed at its end, when it is not accepted anymore",
	},
	{
		file: "controller/member/token.go",
		text: `strings.HasPrefix(t.Account, AccountPrefix) &&`, replacement: `strings.HasPrefix(t.Account, "") &&`,
		harm: "a reader requests tokens of an account that is not its own",
	},
	{
		file: "controller/member/renew.go",
		text: `!ok || candidate.Source != "" ||`, replacement: `!ok ||`,
		harm: "the renewal of tokens writes to the Secret of an inventory",
	},
}
