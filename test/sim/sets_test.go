// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/watch"
	"github.com/clusterset-dns/clusterset-dns/test/answers"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
	"github.com/clusterset-dns/clusterset-dns/test/sim/network"
)

// setsSchedules is how many random schedules TestSets runs.
const setsSchedules = 16

// blueSystem is the namespace of the controller of the set blue in a cluster that is in two sets.
const blueSystem = "clusterset-dns-blue"

// TestSets runs random schedules on a cluster, two, that is in the default set with red and in the set blue with blue.
// The namespace moves between the sets while services, exports and controllers come and go. At no moment does red have
// anything of blue or blue of red, and no controller changes what that of the other set made. In the end each cluster has
// what its set exports.
func TestSets(t *testing.T) {
	for seed := range uint64(setsSchedules) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			sim.RunIdle(t, []string{"east", "west", "north"}, func(t *testing.T, set *sim.ClusterSet) {
				s := newSets(t, set, rand.New(rand.NewPCG(seed, 11)), seed%2 == 0)
				defer s.dns.Stop()
				for range 25 {
					s.step()
					s.judge()
				}
				s.converge()
			})
		})
	}
}

type sets struct {
	t              *testing.T
	random         *rand.Rand
	two, red, blue *sim.Cluster
	// id is that of the cluster two in the set blue.
	id string
	// dns answers for the set blue in the cluster two.
	dns *answers.DNS
	// running are the controllers in the cluster two, by set.
	running map[export.Set]*sim.Controller
	// of is the set of the namespace in the cluster two.
	of       export.Set
	exported map[*sim.Cluster]bool
	address  map[*sim.Cluster]string
	next     int
	log      []string
}

func newSets(t *testing.T, set *sim.ClusterSet, random *rand.Rand, sameID bool) *sets {
	t.Helper()
	s := &sets{
		t: t, random: random, two: set.Cluster("east"), red: set.Cluster("west"), blue: set.Cluster("north"), id: "east",
		running: map[export.Set]*sim.Controller{}, exported: map[*sim.Cluster]bool{}, address: map[*sim.Cluster]string{},
	}
	if !sameID {
		s.id = "east-in-blue"
	}
	_, err := s.two.Kube.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: blueSystem}}, metav1.CreateOptions{})
	must(t, err)
	label(t, s.blue, "blue")
	s.join(s.two, member.DefaultNamespace, "west", s.red, member.DefaultNamespace)
	s.join(s.red, member.DefaultNamespace, "east", s.two, member.DefaultNamespace)
	s.join(s.two, blueSystem, "north", s.blue, member.DefaultNamespace)
	s.join(s.blue, member.DefaultNamespace, s.id, s.two, blueSystem)
	if !sameID {
		s.join(s.red, member.DefaultNamespace, s.id, s.two, blueSystem) // by mistake
		s.join(s.two, blueSystem, "west", s.red, member.DefaultNamespace)
	}
	s.red.StartController()
	s.blue.StartController(func(o *controller.Options) { o.ClusterSet = "blue" })
	s.start("")
	s.start("blue")
	s.two.StartDNS()
	s.red.StartDNS()
	if s.dns, err = answers.StartWith(s.two.Config(), watch.Options{ClusterSet: "blue"}, answers.Unobserved{}); err != nil {
		t.Fatal(err)
	}
	headless := random.IntN(2) == 0
	for _, c := range set.Clusters() {
		s.address[c] = s.newAddress()
		c.Serve("web", headless, s.address[c])
	}
	return s
}

// join gives the controller in a namespace of the reader the credential of a source.
func (s *sets) join(reader *sim.Cluster, namespace, id string, source *sim.Cluster, sourceNamespace string) {
	s.t.Helper()
	kubeconfig := bytes.Replace(source.Kubeconfig(reader.Name), []byte("namespace: "+member.DefaultNamespace),
		[]byte("namespace: "+sourceNamespace), 1)
	_, err := reader.Kube.CoreV1().Secrets(namespace).Create(s.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "member-" + id, Labels: map[string]string{member.ClusterLabel: id}},
		Data:       map[string][]byte{member.KubeconfigKey: kubeconfig},
	}, metav1.CreateOptions{})
	must(s.t, err)
}

// start starts the controller of a set in the cluster two, and has what it changes and deletes checked.
func (s *sets) start(set export.Set) {
	host := "controller-of-" + string(set)
	s.two.API.SetFault(host, func(req *http.Request, serve apiserver.Serve) (*http.Response, error) {
		var object metav1.Object
		if req.Method == http.MethodPut || req.Method == http.MethodDelete {
			object = s.stored(req.URL.Path)
		}
		response, err := serve(req)
		if object != nil && !set.Manages(object) && err == nil && response.StatusCode == http.StatusOK {
			s.t.Errorf("the controller of %s sent %s %s, whose labels were %v\n%s", set, req.Method, req.URL.Path,
				object.GetLabels(), strings.Join(s.log, "\n"))
		}
		return response, err
	})
	s.running[set] = s.two.StartReplica(func(o *controller.Options) {
		o.ClusterSet = set
		o.Config.Host = "https://" + host
		if set != "" {
			o.Namespace, o.Cluster = blueSystem, s.id
		}
	})
}

// stored returns the ServiceImport, Service or EndpointSlice of a path, nil for any other.
func (s *sets) stored(url string) metav1.Object {
	parts := strings.Split(strings.TrimSuffix(url, "/status"), "/")
	name, resource := path.Base(strings.Join(parts, "/")), parts[max(0, len(parts)-2)]
	find := func(objects []metav1.Object) metav1.Object {
		for _, each := range objects {
			if each.GetNamespace() == sim.Namespace && each.GetName() == name {
				return each
			}
		}
		return nil
	}
	var all []metav1.Object
	switch resource {
	case "serviceimports":
		for _, each := range apiserver.List[*unstructured.Unstructured](s.two.API, v1beta1.Resource(resource)) {
			all = append(all, each)
		}
	case "services":
		for _, each := range apiserver.List[*corev1.Service](s.two.API, corev1.Resource(resource)) {
			all = append(all, each)
		}
	case "endpointslices":
		for _, each := range apiserver.List[*discoveryv1.EndpointSlice](s.two.API, discoveryv1.Resource(resource)) {
			all = append(all, each)
		}
	}
	return find(all)
}

func (s *sets) newAddress() string {
	s.next++
	return fmt.Sprintf("10.70.0.%d", s.next)
}

func (s *sets) note(format string, args ...any) {
	s.log = append(s.log, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// step changes something, and lets time pass.
func (s *sets) step() {
	c := anyOf(s.random, s.two, s.two, s.red, s.blue)
	set := anyOf[export.Set](s.random, "", "blue")
	switch s.random.IntN(9) {
	case 0, 1, 2:
		s.of = anyOf[export.Set](s.random, "", "blue", "green")
		s.note("two: the namespace is of %s", s.of)
		label(s.t, s.two, s.of)
	case 3, 4:
		s.note("%s: exported %t", c.Name, !s.exported[c])
		if s.exported[c] = !s.exported[c]; s.exported[c] {
			c.Export("web")
		} else {
			c.Withdraw("web")
		}
	case 5:
		s.address[c] = s.newAddress()
		s.note("%s: %s", c.Name, s.address[c])
		c.SetEndpoints("web", s.address[c])
	case 6, 7:
		s.note("the controller of %s in two: running %t", set, s.running[set] == nil)
		if running := s.running[set]; running != nil {
			anyOf(s.random, (*sim.Controller).Stop, (*sim.Controller).Kill)(running)
			s.running[set] = nil
		} else {
			s.start(set)
		}
	case 8:
		if s.running[set] != nil {
			s.note("the controller of %s in two restarts", set)
			s.running[set].Stop()
			s.start(set)
		}
	}
	sim.Wait(time.Duration(s.random.IntN(20)) * time.Second)
}

// judge looks at what red and blue have.
func (s *sets) judge() {
	s.t.Helper()
	for _, row := range []struct {
		c     *sim.Cluster
		never []string
	}{{s.red, []string{"north/", "east-in-blue/", s.address[s.blue]}}, {s.blue, []string{"west/", s.address[s.red]}}} {
		if row.c == s.blue && s.id != "east" {
			row.never = append(row.never, "east/")
		}
		for _, word := range row.never {
			if has := row.c.Endpoints("web"); strings.Contains(has+" ", word) && !strings.Contains(has, word+"0") {
				s.t.Errorf("%s has %s\n%s", row.c.Name, has, strings.Join(s.log, "\n"))
			}
		}
	}
}

// converge compares what each cluster has once all controllers run.
func (s *sets) converge() {
	s.t.Helper()
	for _, set := range []export.Set{"", "blue"} {
		if s.running[set] == nil {
			s.start(set)
		}
	}
	sim.Wait(10 * time.Minute) // the loss of all exports of a member is accepted after 5 minutes
	s.judge()
	endpoints := func(in *sim.Cluster, sets ...*sim.Cluster) string {
		if in == s.two && s.of == "green" {
			return ""
		}
		var all []string
		for _, each := range sets {
			id := each.Name
			if each == s.two && s.of == "blue" {
				id = s.id
			}
			if s.exported[each] {
				all = append(all, id+"/"+s.address[each])
			}
		}
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	ofDefault, ofBlue := []*sim.Cluster{s.red}, []*sim.Cluster{s.blue}
	inTwo := ofDefault
	switch s.of {
	case "":
		ofDefault = append(ofDefault, s.two)
		inTwo = ofDefault
	case "blue":
		ofBlue = append(ofBlue, s.two)
		inTwo = ofBlue
	}
	for c, want := range map[*sim.Cluster]string{
		s.red: endpoints(s.red, ofDefault...), s.blue: endpoints(s.blue, ofBlue...), s.two: endpoints(s.two, inTwo...),
	} {
		if got := c.Endpoints("web"); got != want {
			s.t.Errorf("in the end %s has %q, want %q\n%s", c.Name, got, want, strings.Join(s.log, "\n"))
		}
	}
	const no = "NXDOMAIN"
	exists := endpoints(s.two, inTwo...) != ""
	inDefault, inBlue := s.two.DNS.Text("web", sim.Namespace), s.dns.Text("web", sim.Namespace)
	if (inDefault != no) != (exists && s.of == "") || (inBlue != no) != (exists && s.of == "blue") {
		s.t.Errorf("in the end the default set answers %s, blue %s\n%s", inDefault, inBlue, strings.Join(s.log, "\n"))
	}
}

// label sets the set of the namespace of scenarios.
func label(t *testing.T, c *sim.Cluster, set export.Set) {
	t.Helper()
	value := `"` + string(set) + `"`
	if set == "" {
		value = "null"
	}
	_, err := c.Kube.CoreV1().Namespaces().Patch(t.Context(), sim.Namespace, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"`+export.LabelSet+`":`+value+`}}}`), metav1.PatchOptions{})
	must(t, err)
}

// TestOneNamespaceForTwoSets: a controller refuses the namespace of that of another set.
func TestOneNamespaceForTwoSets(t *testing.T) {
	sim.RunIdle(t, []string{"east"}, func(t *testing.T, set *sim.ClusterSet) {
		two := set.Cluster("east")
		for _, elected := range []bool{false, true} {
			two.StartController()
			sim.Wait(10 * time.Second)
			another := two.StartReplica(func(o *controller.Options) { o.ClusterSet, o.LeaderElection = "blue", elected })
			sim.Wait(10 * time.Second)
			if err := another.Ended(); err == nil || !strings.Contains(err.Error(), "of the controller of the default cluster set") {
				t.Errorf("elected %t: it ended with %v", elected, err)
			}
			two.StopController()
		}
		must(t, two.Kube.CoordinationV1().Leases(member.DefaultNamespace).Delete(t.Context(), member.HeartbeatLease,
			metav1.DeleteOptions{}))
		blue := two.StartReplica(func(o *controller.Options) { o.ClusterSet = "blue" })
		sim.Wait(10 * time.Second)
		if !blue.Running() {
			t.Errorf("it ended with %v", blue.Ended())
		}
	})
}

// TestMovedNamespaceIsNoLoss: a member that withdraws its exports from a Namespace that left the set here before lost
// nothing of what is imported.
func TestMovedNamespaceIsNoLoss(t *testing.T) {
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		for i := range 3 {
			name := fmt.Sprint("web-", i)
			west.Serve(name, false, fmt.Sprintf("10.2.0.%d", i+1))
			west.Export(name)
		}
		sim.Wait(10 * time.Second)
		west.StopController()
		set.Network.Cut("east", "west", network.Both)
		sim.Wait(time.Minute)
		east.StopController()
		east.StartController()
		sim.Wait(time.Minute)
		label(t, east, "blue")
		sim.Wait(10 * time.Second)
		set.Network.Restore("east", "west")
		label(t, west, "blue")
		west.StartController()
		sim.Wait(time.Minute)
		secrets := east.Kube.CoreV1().Secrets(member.DefaultNamespace)
		list, err := secrets.List(t.Context(), metav1.ListOptions{LabelSelector: member.ClusterLabel + "=west"})
		must(t, err)
		secret := &list.Items[0]
		secret.Data[member.KubeconfigKey] = append(secret.Data[member.KubeconfigKey], '\n')
		_, err = secrets.Update(t.Context(), secret, metav1.UpdateOptions{})
		must(t, err)
		sim.Wait(time.Minute)
		events, err := east.Kube.CoreV1().Events(member.DefaultNamespace).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		for _, event := range events.Items {
			if event.Reason == memberstate.EventMemberQuarantined {
				t.Errorf("%s: %s", event.Reason, event.Message)
			}
		}
	})
}
