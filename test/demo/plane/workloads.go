// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/endpointslice"
	"k8s.io/endpointslice/util"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
)

// sliceController is the name of Kubernetes' EndpointSlice controller.
const sliceController = "endpointslice-controller.k8s.io"

// workloads simulates the controllers of Deployments and StatefulSets, and kubelets whose pods are ready at once and run
// nothing. A pod's number selects its node. Readiness that another client sets is kept. There are no ReplicaSets, workloads
// have no status, and a changed template replaces no pods. Kubernetes' own code reconciles the EndpointSlices.
type workloads struct {
	api        *apiserver.Server
	kube       kubernetes.Interface
	reconciler *endpointslice.Reconciler
	nodes      []string
	next       []netip.Addr // by node: the address of its next pod
}

// play creates the nodes of a plane, with the addresses after base, and simulates the controllers until the context ends.
func play(ctx context.Context, api *apiserver.Server, p *clusterset.Cluster, pods, base netip.Addr) error {
	w := &workloads{api: api, kube: p.Client()}
	for i, zone := range []string{"a", "b"} {
		share := pods.As4()
		share[2] = byte(i) << 7
		first := netip.AddrFrom4(share)
		name := fmt.Sprintf("%s-%d", p.Name(), i)
		base = base.Next()
		w.nodes, w.next = append(w.nodes, name), append(w.next, first.Next())
		if err := p.Apply(ctx, fmt.Appendf(nil, `
apiVersion: v1
kind: Node
metadata: {name: %[1]s, labels: {kubernetes.io/hostname: %[1]s, topology.kubernetes.io/zone: %[2]s-%[3]s}}
spec: {podCIDR: %[4]s/17, podCIDRs: [%[4]s/17]}
status: {addresses: [{type: InternalIP, address: %[5]s}], conditions: [{type: Ready, status: "True"}]}
`, name, p.Name(), zone, first, base)); err != nil {
			return err
		}
	}
	changed := make(chan struct{}, 1)
	wake := func(any) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	factory := informers.NewSharedInformerFactory(w.kube, 0)
	for _, informer := range []cache.SharedIndexInformer{
		factory.Core().V1().Pods().Informer(), factory.Core().V1().Services().Informer(),
		factory.Apps().V1().Deployments().Informer(), factory.Apps().V1().StatefulSets().Informer(),
	} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: wake, UpdateFunc: func(_, now any) { wake(now) }, DeleteFunc: wake,
		}); err != nil {
			return err
		}
	}
	w.reconciler = endpointslice.NewReconciler(w.kube, factory.Core().V1().Nodes().Lister(), 100, util.NewEndpointSliceTracker(),
		nil, &record.FakeRecorder{}, sliceController)
	factory.Start(ctx.Done())
	go func() {
		factory.WaitForCacheSync(ctx.Done())
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
			if w.pass(ctx) != nil { // a conflict, or a terminating namespace: the next pass reads the new state
				time.AfterFunc(100*time.Millisecond, func() { wake(nil) })
			}
		}
	}()
	return nil
}

// pass reconciles the current state with the desired state.
func (w *workloads) pass(ctx context.Context) error {
	var failed []error
	pods := apiserver.List[*corev1.Pod](w.api, corev1.Resource("pods"))
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for _, each := range apiserver.List[*appsv1.Deployment](w.api, apps("deployments")) {
		failed = append(failed, w.scale(ctx, each, "Deployment", each.Spec.Replicas, each.Spec.Template, pods))
	}
	for _, each := range apiserver.List[*appsv1.StatefulSet](w.api, apps("statefulsets")) {
		failed = append(failed, w.scale(ctx, each, "StatefulSet", each.Spec.Replicas, each.Spec.Template, pods))
	}
	for _, each := range pods {
		if each.Status.Phase == corev1.PodPending && each.DeletionTimestamp == nil {
			failed = append(failed, w.run(ctx, each.DeepCopy()))
		}
	}
	for _, each := range apiserver.List[*corev1.Service](w.api, corev1.Resource("services")) {
		if each.Spec.Selector != nil && each.Spec.Type != corev1.ServiceTypeExternalName {
			failed = append(failed, w.slices(each, pods))
		}
	}
	return errors.Join(failed...)
}

func apps(resource string) schema.GroupResource {
	return appsv1.SchemeGroupVersion.WithResource(resource).GroupResource()
}

// scale creates or deletes pods until an owner has its replicas. A pod has the owner's name and a number.
func (w *workloads) scale(ctx context.Context, owner metav1.Object, kind string, replicas *int32, template corev1.PodTemplateSpec,
	pods []*corev1.Pod,
) error {
	if owner.GetDeletionTimestamp() != nil {
		return nil
	}
	client := w.kube.CoreV1().Pods(owner.GetNamespace())
	var failed []error
	surplus := map[string]bool{}
	for _, each := range pods {
		if metav1.IsControlledBy(each, owner) {
			surplus[each.Name] = true
		}
	}
	for i := range int(ptr.Deref(replicas, 1)) {
		name := owner.GetName() + "-" + strconv.Itoa(i)
		if surplus[name] {
			delete(surplus, name)
			continue
		}
		pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
		for i := range pod.Spec.Containers {
			for j := range pod.Spec.Containers[i].Ports { // defaulted, because the model API server does not
				pod.Spec.Containers[i].Ports[j].Protocol = cmp.Or(pod.Spec.Containers[i].Ports[j].Protocol, corev1.ProtocolTCP)
			}
		}
		pod.Name, pod.Spec.NodeName = name, w.nodes[i%len(w.nodes)]
		pod.OwnerReferences = []metav1.OwnerReference{
			*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind(kind)),
		}
		if set, is := owner.(*appsv1.StatefulSet); is {
			pod.Spec.Hostname, pod.Spec.Subdomain = name, set.Spec.ServiceName
			metav1.SetMetaDataLabel(&pod.ObjectMeta, appsv1.StatefulSetPodNameLabel, name)
		}
		_, err := client.Create(ctx, pod, metav1.CreateOptions{})
		failed = append(failed, err)
	}
	for name := range surplus {
		if err := client.Delete(ctx, name, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// run gives a pod an address on its node, and reports it as ready.
func (w *workloads) run(ctx context.Context, pod *corev1.Pod) error {
	i := slices.Index(w.nodes, pod.Spec.NodeName)
	if i < 0 {
		return nil // the pod stays pending, as without a node
	}
	address := w.next[i].String()
	w.next[i] = w.next[i].Next()
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}},
	}
	_, err := w.kube.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

// slices reconciles the EndpointSlices of a Service with a selector.
func (w *workloads) slices(service *corev1.Service, pods []*corev1.Pod) error {
	if service.DeletionTimestamp != nil {
		return nil
	}
	behind := slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool {
		return pod.Namespace != service.Namespace || !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels))
	})
	existing := slices.DeleteFunc(apiserver.List[*discoveryv1.EndpointSlice](w.api, discoveryv1.Resource("endpointslices")),
		func(slice *discoveryv1.EndpointSlice) bool {
			return !metav1.IsControlledBy(slice, service) || slice.Labels[discoveryv1.LabelManagedBy] != sliceController
		})
	return w.reconciler.Reconcile(klog.Background(), service, behind, existing, time.Now())
}
