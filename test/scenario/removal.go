// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/mcs-api/config/crd"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// deleteCRDs deletes those of these resources, and with them all objects.
func (c *Cluster) deleteCRDs(resources ...string) {
	c.set.Helper()
	for _, each := range resources {
		c.set.must(c.Dynamic.Resource(definitions).Delete(c.set.Context(), each+".multicluster.x-k8s.io", metav1.DeleteOptions{}))
	}
	for _, each := range resources {
		c.set.Eventually(each+" are not served", func() error {
			if _, err := c.Dynamic.Resource(mcsResource(each)).List(c.set.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("they are, or: %w", err)
			}
			return nil
		})
	}
}

// createCRDs creates all.
func (c *Cluster) createCRDs() {
	c.set.Helper()
	c.set.Eventually("CRDs", func() error {
		return c.put(c.set.Context(), string(crd.ServiceExportCRD)+"\n---\n"+string(crd.ServiceImportCRD))
	})
	for _, each := range []string{"serviceexports", "serviceimports"} {
		c.set.Eventually(each+" are served", func() error {
			_, err := c.Dynamic.Resource(mcsResource(each)).List(c.set.Context(), metav1.ListOptions{})
			return err
		})
	}
}

// removal: an administrator removes what services stand on. That is a decision
// and not a silence: everything follows, and comes back.
func removal(s *Set, east, west, north *Cluster) {
	west.deleteCRDs("serviceexports", "serviceimports")
	s.Except(west, nothing, westGone)
	s.Holds(10*time.Second, westGone, east, north)
	west.createCRDs()
	s.Expect(westGone)
	exportAll(west)
	s.Expect(healthy)

	west.deleteCRDs("serviceexports")
	s.Expect(westGone, east, north)
	west.createCRDs()
	s.Expect(westGone)
	exportAll(west)
	s.Expect(healthy)

	// The others do not notice that a reader has none.
	east.deleteCRDs("serviceexports", "serviceimports")
	s.Except(east, nothing, healthy)
	west.SetEndpoints("lone", "10.65.0.9")
	seen := healthy.With("lone", "west/10.65.0.9 -> 10.65.0.9")
	s.Except(east, nothing, seen)
	east.createCRDs()
	s.Expect(seen)
}

// servicesDeleted: an export without a Service contributes nothing, and its
// import stays with its IP and without endpoints.
func servicesDeleted(s *Set, east, west, north *Cluster) {
	ips := east.IPs("solo")
	for _, service := range []string{"web", "solo", "db", "lone"} {
		west.DeleteService(service)
	}
	left := westGone.With("solo", "-> VIP (Pending)", "lone", "-> NXDOMAIN (Pending)")
	s.Expect(left, east, north)
	s.Eventually("exports without Service", func() error {
		for _, service := range []string{"web", "solo", "db", "lone"} {
			if got := west.See(service); !strings.Contains(got, "Valid=NoService") {
				return fmt.Errorf("%s: %s", service, got)
			}
		}
		return nil
	})
	exportAll(west)
	s.Expect(healthy)
	east.IPs("solo", ips...)
}

// load changes endpoints of west and north all the time, until the returned
// function is called. A cluster may not have the namespace.
func (s *Set) load() (stop func()) {
	ctx, cancel := context.WithCancel(s.Context())
	var writing sync.WaitGroup
	for _, name := range []string{"west", "north"} {
		c := s.Cluster(name)
		writing.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				for _, service := range []string{"web", "db"} {
					err := c.put(ctx, endpointsOf(service, "", fmt.Sprintf("10.67.0.%d", i%250+1)))
					if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
						s.Errorf("%s: %v", c.Name, err)
					}
				}
				s.Pass(300 * time.Millisecond)
			}
		})
	}
	return func() {
		cancel()
		writing.Wait()
	}
}

// namespaceUnderLoad: it goes from one cluster and comes back, while all change.
func namespaceUnderLoad(s *Set, east, west, north *Cluster) {
	for _, c := range []*Cluster{west, east} {
		stop := s.load()
		c.DeleteNamespace()
		s.Expect(nothing, c)
		stop()
		exportAll(north)
		if c == west {
			s.Except(c, nothing, westGone)
		} else {
			exportAll(west)
			s.Except(c, nothing, healthy)
		}
		stop = s.load()
		c.CreateNamespace()
		exportAll(c)
		stop()
		exportAll(west)
		exportAll(north)
		s.Expect(healthy)
	}
}
