// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
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
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
)

// workloads plays the controllers of Deployments, StatefulSets and EndpointSlices, kube-scheduler, and kubelets whose
// pods are ready at once and run nothing. A pod keeps the readiness that somebody else gives to it. It makes no
// ReplicaSets and replaces no pods if a template changes.
type workloads struct {
	api   *apiserver.Server
	kube  kubernetes.Interface
	nodes []*corev1.Node
	next  []netip.Addr // of each node: the address of its next pod
}

// play creates the nodes of a cluster, and plays until the context ends.
func play(ctx context.Context, api *apiserver.Server, kube kubernetes.Interface, cluster string,
	pods netip.Addr,
) error {
	w := &workloads{api: api, kube: kube}
	for i, zone := range []string{"a", "b"} {
		share := pods.As4()
		share[2] = byte(i) << 7
		first := netip.AddrFrom4(share)
		prefix := netip.PrefixFrom(first, 17).String()
		name := fmt.Sprintf("%s-%d", cluster, i)
		node, err := kube.CoreV1().Nodes().Create(ctx, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
				corev1.LabelHostname: name, corev1.LabelTopologyZone: cluster + "-" + zone,
			}},
			Spec: corev1.NodeSpec{PodCIDR: prefix, PodCIDRs: []string{prefix}},
			Status: corev1.NodeStatus{
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		w.nodes, w.next = append(w.nodes, node), append(w.next, first.Next())
	}
	changed := make(chan struct{}, 1)
	wake := func(any) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	factory := informers.NewSharedInformerFactory(kube, 0)
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
	factory.Start(ctx.Done())
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
			if w.pass(ctx) != nil { // a conflict, or a namespace that is going: the next pass sees what is there
				time.AfterFunc(100*time.Millisecond, func() { wake(nil) })
			}
		}
	}()
	return nil
}

// pass brings about what is desired, from the present state.
func (w *workloads) pass(ctx context.Context) error {
	var failed []error
	pods := apiserver.List[*corev1.Pod](w.api, corev1.Resource("pods"))
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for _, each := range apiserver.List[*appsv1.Deployment](w.api, apps("deployments")) {
		failed = append(failed, w.deployment(ctx, each.DeepCopy(), owned(pods, each)))
	}
	for _, each := range apiserver.List[*appsv1.StatefulSet](w.api, apps("statefulsets")) {
		failed = append(failed, w.statefulSet(ctx, each.DeepCopy(), owned(pods, each)))
	}
	on := map[string]int{} // pods of each node
	for _, each := range pods {
		on[each.Spec.NodeName]++
	}
	for _, each := range pods {
		if each.Status.Phase == corev1.PodPending && each.DeletionTimestamp == nil {
			failed = append(failed, w.run(ctx, each.DeepCopy(), on))
		}
	}
	for _, each := range apiserver.List[*corev1.Service](w.api, corev1.Resource("services")) {
		if each.Spec.Selector != nil && each.Spec.Type != corev1.ServiceTypeExternalName {
			failed = append(failed, w.slice(ctx, each, pods))
		}
	}
	return errors.Join(failed...)
}

func apps(resource string) schema.GroupResource {
	return appsv1.SchemeGroupVersion.WithResource(resource).GroupResource()
}

// owned are the pods that an object controls.
func owned(pods []*corev1.Pod, by metav1.Object) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { return !metav1.IsControlledBy(pod, by) })
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(each corev1.PodCondition) bool {
		return each.Type == corev1.PodReady && each.Status == corev1.ConditionTrue
	})
}

func countReady(pods []*corev1.Pod) (count int32) {
	for _, each := range pods {
		if ready(each) {
			count++
		}
	}
	return count
}

// create creates a pod of a template.
func (w *workloads) create(ctx context.Context, owner metav1.Object, kind string, template corev1.PodTemplateSpec,
	change func(*corev1.Pod),
) error {
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind(kind)),
	}
	change(pod)
	_, err := w.kube.CoreV1().Pods(owner.GetNamespace()).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

func (w *workloads) remove(ctx context.Context, pod *corev1.Pod) error {
	err := w.kube.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (w *workloads) deployment(ctx context.Context, d *appsv1.Deployment, pods []*corev1.Pod) error {
	if d.DeletionTimestamp != nil {
		return nil
	}
	want := int(ptr.Deref(d.Spec.Replicas, 1))
	var failed []error
	for range want - len(pods) {
		failed = append(failed, w.create(ctx, d, "Deployment", d.Spec.Template, func(pod *corev1.Pod) {
			pod.GenerateName = d.Name + "-"
		}))
	}
	for _, each := range pods[min(want, len(pods)):] {
		failed = append(failed, w.remove(ctx, each))
	}
	status := d.Status
	count, serving := int32(len(pods)), countReady(pods)
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: count, UpdatedReplicas: count, ReadyReplicas: serving,
		AvailableReplicas: serving,
	}
	if !reflect.DeepEqual(status, d.Status) {
		_, err := w.kube.AppsV1().Deployments(d.Namespace).UpdateStatus(ctx, d, metav1.UpdateOptions{})
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

func (w *workloads) statefulSet(ctx context.Context, set *appsv1.StatefulSet, pods []*corev1.Pod) error {
	if set.DeletionTimestamp != nil {
		return nil
	}
	want := int(ptr.Deref(set.Spec.Replicas, 1))
	var failed []error
	names := map[string]bool{}
	for i := range want {
		name := set.Name + "-" + strconv.Itoa(i)
		names[name] = true
		if slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return pod.Name == name }) {
			continue
		}
		failed = append(failed, w.create(ctx, set, "StatefulSet", set.Spec.Template, func(pod *corev1.Pod) {
			pod.Name, pod.Spec.Hostname, pod.Spec.Subdomain = name, name, set.Spec.ServiceName
			metav1.SetMetaDataLabel(&pod.ObjectMeta, appsv1.StatefulSetPodNameLabel, name)
		}))
	}
	for _, each := range pods {
		if !names[each.Name] {
			failed = append(failed, w.remove(ctx, each))
		}
	}
	status := set.Status
	count, serving := int32(len(pods)), countReady(pods)
	set.Status = appsv1.StatefulSetStatus{
		ObservedGeneration: set.Generation, Replicas: count, CurrentReplicas: count, UpdatedReplicas: count,
		ReadyReplicas: serving, AvailableReplicas: serving,
	}
	if !reflect.DeepEqual(status, set.Status) {
		_, err := w.kube.AppsV1().StatefulSets(set.Namespace).UpdateStatus(ctx, set, metav1.UpdateOptions{})
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// run gives a pod the node with the fewest pods, and an address, and says that it is ready.
func (w *workloads) run(ctx context.Context, pod *corev1.Pod, on map[string]int) error {
	client := w.kube.CoreV1().Pods(pod.Namespace)
	if pod.Spec.NodeName == "" {
		pod.Spec.NodeName = slices.MinFunc(w.nodes, func(a, b *corev1.Node) int {
			return cmp.Compare(on[a.Name], on[b.Name])
		}).Name
		on[pod.Spec.NodeName]++
		_, err := client.Update(ctx, pod, metav1.UpdateOptions{})
		return err // its event begins another pass
	}
	i := slices.IndexFunc(w.nodes, func(node *corev1.Node) bool { return node.Name == pod.Spec.NodeName })
	if i < 0 {
		return nil // it waits for ever, as on a node that does not exist
	}
	address := w.next[i].String()
	w.next[i] = w.next[i].Next()
	began := metav1.Now()
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}, StartTime: &began,
	}
	for _, each := range []corev1.PodConditionType{
		corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady,
	} {
		pod.Status.Conditions = append(pod.Status.Conditions,
			corev1.PodCondition{Type: each, Status: corev1.ConditionTrue, LastTransitionTime: began})
	}
	for _, each := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: each.Name, Image: each.Image, Ready: true, Started: ptr.To(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}},
		})
	}
	_, err := client.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

// slice writes the EndpointSlice of a Service with a selector.
func (w *workloads) slice(ctx context.Context, service *corev1.Service, pods []*corev1.Pod) error {
	if service.DeletionTimestamp != nil {
		return nil
	}
	wanted := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: service.Name + "-", Namespace: service.Namespace, Labels: map[string]string{
				discoveryv1.LabelServiceName: service.Name, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io",
			},
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(service, corev1.SchemeGroupVersion.WithKind("Service")),
			},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	if service.Spec.ClusterIP == corev1.ClusterIPNone {
		wanted.Labels[corev1.IsHeadlessService] = ""
	}
	for _, pod := range pods {
		if pod.Namespace != service.Namespace || pod.Status.PodIP == "" ||
			!labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels)) {
			continue
		}
		if wanted.Ports == nil {
			wanted.Ports = portsOf(service, pod)
		}
		going := pod.DeletionTimestamp != nil
		endpoint := discoveryv1.Endpoint{
			Addresses: []string{pod.Status.PodIP}, NodeName: &pod.Spec.NodeName,
			Conditions: discoveryv1.EndpointConditions{
				Ready: ptr.To(ready(pod) && !going), Serving: ptr.To(ready(pod)), Terminating: &going,
			},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		}
		if pod.Spec.Hostname != "" && pod.Spec.Subdomain == service.Name {
			endpoint.Hostname = &pod.Spec.Hostname
		}
		for _, node := range w.nodes {
			if node.Name == pod.Spec.NodeName {
				endpoint.Zone = ptr.To(node.Labels[corev1.LabelTopologyZone])
			}
		}
		wanted.Endpoints = append(wanted.Endpoints, endpoint)
	}
	client := w.kube.DiscoveryV1().EndpointSlices(service.Namespace)
	for _, each := range apiserver.List[*discoveryv1.EndpointSlice](w.api, discoveryv1.Resource("endpointslices")) {
		if !metav1.IsControlledBy(each, service) ||
			each.Labels[discoveryv1.LabelManagedBy] != wanted.Labels[discoveryv1.LabelManagedBy] {
			continue
		}
		if reflect.DeepEqual(each.Endpoints, wanted.Endpoints) && reflect.DeepEqual(each.Ports, wanted.Ports) {
			return nil
		}
		changed := each.DeepCopy()
		changed.Endpoints, changed.Ports = wanted.Endpoints, wanted.Ports
		_, err := client.Update(ctx, changed, metav1.UpdateOptions{})
		return err
	}
	_, err := client.Create(ctx, wanted, metav1.CreateOptions{})
	return err
}

// portsOf are the ports of a Service's endpoints, by the names that a pod gives to its own.
func portsOf(service *corev1.Service, pod *corev1.Pod) (ports []discoveryv1.EndpointPort) {
	for _, each := range service.Spec.Ports {
		number := each.TargetPort.IntVal
		for _, container := range pod.Spec.Containers {
			for _, port := range container.Ports {
				if each.TargetPort.StrVal != "" && port.Name == each.TargetPort.StrVal {
					number = port.ContainerPort
				}
			}
		}
		ports = append(ports, discoveryv1.EndpointPort{
			Name: ptr.To(each.Name), Port: ptr.To(number), Protocol: ptr.To(each.Protocol),
		})
	}
	return ports
}
