// SPDX-License-Identifier: Apache-2.0

package main

// relaying are mistakes in what counts of what a relay shows.
var relaying = []mutant{
	{
		file: "controller/relay/inbox/inbox.go",
		text: `if view.put != (Stamp{}) && !view.put.After(heartbeat.Stamp) {`, replacement: `if false {`,
		harm: "a relay withholds a change for as long as it likes, and the member seems alive",
	},
	{
		file: "controller/relay/inbox/inbox.go",
		text: `if b.settled && b.isNew(e) {`, replacement: `if b.settled {`,
		harm: "a relay brings back a slice that the member has deleted",
	},
	{
		file: "controller/relay/inbox/inbox.go",
		text: `e.changed <= number && !e.released.After(heartbeat.Stamp)`, replacement: `e.changed <= number`,
		harm: "an old heartbeat takes a newer slice away",
	},
	{
		file: "controller/relay/inbox/heard.go",
		text: `floor.Key == stamp.Key && !stamp.After(floor)`, replacement: `false`,
		harm: "a relay shows a state from before the member was last read directly",
	},
	{
		file: "controller/relay/inbox/heard.go",
		text: `return !h.slice.After(stamp) && h.beyond(`, replacement: `return h.beyond(`,
		harm: "a list goes back behind a slice that another relay has shown",
	},
	{
		file: "controller/memberstate/leases.go",
		text: `heard: lease.Annotations[HeardAnnotation],`, replacement: `heard: "",`,
		harm: "a relay shows a new leader a state from before the last one that was heard",
	},
	{
		file: "controller/member/source.go",
		text: `if !from.unsigned {`, replacement: `if from.err == nil {`,
		harm: "a key that was removed stays trusted while another part of the credential is invalid",
	},
	{
		file: "controller/member/mailbox.go",
		text: `if progress { // what`, replacement: `if true { // what`,
		harm: "a relay that shows unsigned records for ever is never left",
	},
	{
		file: "controller/member/mailbox.go",
		text: `if offered == nil { // it cannot be decoded`, replacement: `if false { // it cannot be decoded`,
		harm: "a slice that cannot be decoded takes its last known endpoints away with the next list",
	},
}
