// SPDX-License-Identifier: Apache-2.0

package state

// ProbePort is the port on which the pods of kubectl clusterset test connectivity echo.
const ProbePort = 8007

// A ProbeStep is the step at which a connection of a pod failed, or ProbeOK.
type ProbeStep string

// The steps.
const (
	ProbeOK         ProbeStep = "ok"
	ProbeUnresolved ProbeStep = "name does not resolve"
	ProbeTimeout    ProbeStep = "connection times out"
	ProbeLargeLost  ProbeStep = "large payload lost"
	ProbeFailed     ProbeStep = "connection fails"
)

// A ProbeResult is ProbeOK if every address of the name that the pod has a route to returned a small and a large payload.
// Otherwise it has the first failure.
type ProbeResult struct {
	Step    ProbeStep `json:"step"`
	Address string    `json:"address,omitempty"`
	Error   string    `json:"error,omitempty"`
}

// A ProbeLine is a line of a pod's log: the newest result of the target number Index, from 0.
type ProbeLine struct {
	Index int `json:"index"`
	ProbeResult
}
