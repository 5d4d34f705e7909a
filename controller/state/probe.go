// SPDX-License-Identifier: Apache-2.0

package state

// ProbePort is where the pods of kubectl clusterset test connectivity echo.
const ProbePort = 8007

// A ProbeStep is how far a connection of a pod came.
type ProbeStep string

// Steps. All but ProbeOK are failures.
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

// A ProbeLine of the log of a pod is the newest result of a target, which Index counts from 0.
type ProbeLine struct {
	Index int `json:"index"`
	ProbeResult
}
