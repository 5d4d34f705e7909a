// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
)

// StopAPI kills the API server: nobody can connect to it, and its connections are reset.
func (c *Cluster) StopAPI() {
	c.API.Stop()
	c.stopServing()
	c.network.ResetAll(c.Name)
	c.stopServing = func() {}
	c.stopped = true
}

// FreezeAPI has the API server stand still, as a process that is stopped:
// connections to it are made, and nothing is answered.
func (c *Cluster) FreezeAPI() {
	c.network.Freeze(c.Name)
	c.API.Freeze()
}

// StartAPI undoes StopAPI and FreezeAPI. It does nothing if the API server works.
func (c *Cluster) StartAPI() {
	c.API.Thaw()
	c.network.Thaw(c.Name)
	if c.stopped {
		c.stopped = false
		c.serve()
		c.API.Start()
	}
}

// SetImpostor has what listens at the address of the API server prove that it is
// the API server of the cluster, or not, to those who connect from now on.
func (c *Cluster) SetImpostor(impostor bool) {
	c.impostor.Store(impostor)
	c.network.ResetAll(c.Name)
}

// standard are the CustomResourceDefinitions of the MCS API, parsed once: each cluster of each scenario has them.
var standard = sync.OnceValue(func() []*unstructured.Unstructured {
	objects, err := clusterset.Objects([]byte(clusterset.CRDs))
	if err != nil {
		panic(err)
	}
	return objects
})
