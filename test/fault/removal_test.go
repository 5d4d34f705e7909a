// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
)

// TestRemoval: an administrator takes away what services stand on. That is a
// word, and not a silence: everything follows.
func TestRemoval(t *testing.T) {
	b := newBed(t)
	b.fault("the CRDs of a member are deleted and restored", testCRDsOfAMember)
	b.fault("the CRD of exports is deleted and restored", testCRDOfExports)
	b.fault("the CRDs of a reader are deleted and restored", testCRDsOfAReader)
	b.fault("the namespace is deleted in a member, under load", func(b *bed) { testNamespace(b, b.west) })
	b.fault("the namespace is deleted in a reader, under load", func(b *bed) { testNamespace(b, b.east) })
	b.fault("the Services are deleted behind their exports", testServicesAreDeleted)
	b.fault("what the controller made is deleted by hand", testMadeIsDeleted)
}

// nothing is the view of a cluster that imports nothing.
var nothing = view{"web": gone, "solo": gone, "db": gone, "lone": gone}

func (b *bed) installCRDs(c *cluster, which controlplane.CRDs) {
	b.Helper()
	b.must(c.InstallCRDs(b.Context(), which))
}

// restoreCRDs makes the CRDs be there when the test ends, however it ends.
func (b *bed) restoreCRDs(c *cluster) {
	b.Cleanup(func() { b.must(c.InstallCRDs(context.Background(), controlplane.CRDsAll)) })
}

// testCRDsOfAMember: its exports and imports are gone with them.
func testCRDsOfAMember(b *bed) {
	b.restoreCRDs(b.west)
	b.mayGo([]string{"solo", "lone"})
	b.mayGo(healthy.services(), b.west)
	b.installCRDs(b.west, controlplane.CRDsNone)
	b.everywhere(westGone, map[*cluster]view{b.west: nothing})
	b.pass(10*tick, b.pairs()...)
	b.everywhere(westGone, map[*cluster]view{b.west: nothing})
	b.installCRDs(b.west, controlplane.CRDsAll)
	b.expect(westGone)
	b.exportServices(b.west)
	b.expect(healthy)
	b.calm()
}

// testCRDOfExports: the imports stay as they are until both CRDs are there.
func testCRDOfExports(b *bed) {
	b.restoreCRDs(b.west)
	b.mayGo([]string{"solo", "lone"})
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	b.must(b.west.Dynamic().Resource(crds).Delete(b.Context(), "serviceexports.multicluster.x-k8s.io", metav1.DeleteOptions{}))
	b.expect(westGone, b.east, b.north)
	b.installCRDs(b.west, controlplane.CRDsAll)
	b.expect(westGone)
	b.exportServices(b.west)
	b.expect(healthy)
	b.calm()
}

// testCRDsOfAReader: the others do not notice.
func testCRDsOfAReader(b *bed) {
	b.restoreCRDs(b.east)
	b.mayGo(healthy.services(), b.east)
	b.installCRDs(b.east, controlplane.CRDsNone)
	b.everywhere(healthy, map[*cluster]view{b.east: nothing})
	b.endpoints(b.west, "lone", "10.65.0.9")
	seen := healthy.with("lone", "west/10.65.0.9 -> 10.65.0.9")
	b.everywhere(seen, map[*cluster]view{b.east: nothing})
	b.installCRDs(b.east, controlplane.CRDsAll)
	b.expect(seen)
	b.calm()
}

// load changes endpoints in all clusters that export, forty times a second,
// until the returned function is called. A cluster may not have the namespace.
func (b *bed) load() (stop func()) {
	ctx, cancel := context.WithCancel(b.Context())
	var writing sync.WaitGroup
	for at, name := range map[*cluster]string{b.west: "10.65.2.%d", b.north: "10.66.2.%d"} {
		for i := range 250 {
			b.allowed.give(fmt.Sprintf(name, i+1))
		}
		writing.Go(func() {
			pace := time.NewTicker(100 * time.Millisecond)
			defer pace.Stop()
			for i := 0; ctx.Err() == nil; i++ {
				for _, service := range []string{"web", "db"} {
					err := at.apply(ctx, b.namespace, sliceOf(service, fmt.Sprintf(name, i%250+1)))
					if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
						b.Errorf("%s: %v", at.Name(), err)
					}
				}
				select {
				case <-ctx.Done():
				case <-pace.C:
				}
			}
		})
	}
	stop = sync.OnceFunc(func() {
		cancel()
		writing.Wait()
	})
	b.Cleanup(stop)
	return stop
}

// testNamespace: it goes from one cluster and comes back, while all change.
func testNamespace(b *bed, c *cluster) {
	stop := b.load()
	if c == b.west {
		b.mayGo([]string{"solo", "lone"})
	}
	b.mayGo(healthy.services(), c)
	b.must(c.CoreV1().Namespaces().Delete(b.Context(), b.namespace, metav1.DeleteOptions{}))
	b.eventually("no namespace", func(ctx context.Context) error {
		_, err := c.CoreV1().Namespaces().Get(ctx, b.namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
	b.expect(nothing, c)
	stop()
	b.exportServices(b.north)
	if c == b.west {
		b.everywhere(westGone, map[*cluster]view{c: nothing})
	} else {
		b.exportServices(b.west)
		b.everywhere(healthy, map[*cluster]view{c: nothing})
	}
	b.calm()
	stop = b.load()
	b.createNamespace(c)
	b.exportServices(c)
	stop()
	b.exportServices(b.west)
	b.exportServices(b.north)
	b.expect(healthy)
	b.calm()
}

// testServicesAreDeleted: an export without a Service contributes nothing. At
// home the import stays for it, with its IP and without endpoints.
func testServicesAreDeleted(b *bed) {
	b.mayGo([]string{"solo", "lone"})
	for _, name := range healthy.services() {
		b.must(b.removeService(b.west, name))
	}
	b.expect(westGone, b.east, b.north)
	at := westGone.with("solo", " -> IP").with("lone", " -> NXDOMAIN")
	b.eventually("exports that are not valid", func(ctx context.Context) error {
		seen, err := b.look(ctx, b.west, at.services())
		if err != nil {
			return err
		}
		for name, text := range at {
			got, but, _ := strings.Cut(seen[name], ", but ")
			if got != text || !strings.Contains(but, "the conditions of its export are") || !strings.Contains(but, "NoService") {
				return fmt.Errorf("%s: %s", name, seen[name])
			}
		}
		return nil
	})
	b.exportServices(b.west)
	b.expect(healthy)
	b.calm()
}

// removeService deletes a Service and its endpoints.
func (b *bed) removeService(c *cluster, name string) error {
	err := c.CoreV1().Services(b.namespace).Delete(b.Context(), name, metav1.DeleteOptions{})
	if err != nil {
		return err
	}
	return ignoreNotFound(c.DiscoveryV1().EndpointSlices(b.namespace).Delete(b.Context(), name+"-manual", metav1.DeleteOptions{}))
}

// testMadeIsDeleted: it is made again, at home and where it was copied.
func testMadeIsDeleted(b *bed) {
	b.mayGo(healthy.services())
	for range 5 {
		for _, c := range b.all() {
			o, err := b.objects(b.Context(), c)
			b.must(err)
			for name := range o.derived {
				b.must(ignoreNotFound(c.CoreV1().Services(b.namespace).Delete(b.Context(), name, metav1.DeleteOptions{})))
			}
			made := metav1.ListOptions{LabelSelector: "multicluster.kubernetes.io/source-cluster"}
			b.must(c.DiscoveryV1().EndpointSlices(b.namespace).DeleteCollection(b.Context(), metav1.DeleteOptions{}, made))
			b.must(c.mcs.MulticlusterV1beta1().ServiceImports(b.namespace).DeleteCollection(b.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
		}
	}
	b.expect(healthy)
}
