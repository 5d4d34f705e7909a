// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/test/soak/workload"
)

// namespace is that of all services.
const namespace = "soak"

// A writer changes the services of one cluster.
type writer struct {
	*cluster
	workload.Cluster
}

// write brings the cluster from one state of a service to the next.
func (w *writer) write(ctx context.Context, from, to workload.Service) {
	for _, next := range workload.Path(from, to) {
		w.journal.note("%s: %s becomes %+v", w.Name(), next.Name, next)
		w.journal.changed.Store(&next.Name)
		written := w.judge.Change(w.Name(), next.Name, next.State(), time.Now())
		for _, each := range workload.Writes(from, next, namespace, "soak") {
			w.put(ctx, each)
		}
		written(time.Now())
		w.Services[next.Name], from = next, next
	}
}

// put sends a request until it went well: what was written must be known.
func (w *writer) put(ctx context.Context, each workload.Write) {
	content, err := json.Marshal(each.Object)
	if err == nil {
		var fields map[string]any
		if err = json.Unmarshal(content, &fields); err == nil {
			delete(fields, "status")
			content, err = json.Marshal(fields)
		}
	}
	if err != nil {
		w.journal.wrong("encode %s %s: %v", each.Resource, each.Object.GetName(), err)
		return
	}
	client := map[string]rest.Interface{
		"services": w.Client().CoreV1().RESTClient(), "endpointslices": w.Client().DiscoveryV1().RESTClient(),
		"serviceexports": w.mcs.MulticlusterV1beta1().RESTClient(),
	}[each.Resource]
	err = eventually(ctx, "write to "+w.Name(), patience, func(ctx context.Context) error {
		request := client.Patch(types.ApplyPatchType).Body(content).
			SpecificallyVersionedParams(&metav1.PatchOptions{FieldManager: "soak", Force: ptr.To(true)}, scheme.ParameterCodec, schema.GroupVersion{Version: "v1"})
		if each.Delete {
			request = client.Delete()
		}
		err := request.Namespace(namespace).Resource(each.Resource).Name(each.Object.GetName()).Do(ctx).Error()
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	if err != nil && ctx.Err() == nil {
		w.journal.wrong("the soak itself: %v", err)
	}
}
