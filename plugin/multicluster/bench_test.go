// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/coredns/coredns/plugin/test"
	"github.com/miekg/dns"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

// packer is a client's side: it packs what is written, as the server does. It has the same address always, as a
// connection has.
type packer struct {
	test.ResponseWriter
	remote net.Addr
}

var (
	udpClient = &packer{remote: &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1).To4(), Port: 40000}}
	tcpClient = &packer{remote: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1).To4(), Port: 40000}}
)

func (p *packer) RemoteAddr() net.Addr { return p.remote }

func (p *packer) WriteMsg(m *dns.Msg) error {
	_, err := m.Pack()
	return err
}

// floor is the least that a plugin can do: it has the records and writes them.
type floor struct {
	answer, ns, extra []dns.RR
	rcode             int
}

func (f *floor) serve(w dns.ResponseWriter, r *dns.Msg) error {
	m := new(dns.Msg)
	m.SetReply(r)
	m.Authoritative = true
	m.Answer, m.Ns, m.Extra, m.Rcode = f.answer, f.ns, f.extra, f.rcode
	return w.WriteMsg(m)
}

// manyImports are so many ClusterSetIP services, called web-<i>.
func manyImports(count int) fixture {
	var all fixture
	for i := range count {
		all.imports = append(all.imports, &mcsv1beta1.ServiceImport{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("web-%d", i), Namespace: "demo"},
			Spec: mcsv1beta1.ServiceImportSpec{
				Type:  mcsv1beta1.ClusterSetIP,
				IPs:   []string{netip.AddrFrom4([4]byte{10, byte(42 + i>>16), byte(i >> 8), byte(i)}).String()},
				Ports: []mcsv1beta1.ServicePort{{Name: "http", Port: 80}},
			},
		})
	}
	return all
}

// headless adds a headless service with so many endpoints, half of them in each of two clusters; those of east have
// hostnames.
func (f *fixture) headless(name string, count int) {
	f.imports = append(f.imports, &mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "demo"},
		Spec: mcsv1beta1.ServiceImportSpec{
			Type: mcsv1beta1.Headless, Ports: []mcsv1beta1.ServicePort{{Name: "sql", Port: 5432}},
		},
	})
	for c, cluster := range []string{"east", "west"} {
		for start := 0; start < count/2; start += 100 {
			slice := &discoveryv1.EndpointSlice{
				ObjectMeta: metav1.ObjectMeta{
					Name: fmt.Sprintf("%s-%s-%d", name, cluster, start), Namespace: "demo",
					Labels: map[string]string{
						mcsv1beta1.LabelServiceName:   name,
						mcsv1beta1.LabelSourceCluster: cluster,
					},
				},
				AddressType: discoveryv1.AddressTypeIPv4,
				Ports:       []discoveryv1.EndpointPort{{Name: pointer("sql"), Port: pointer(int32(5432))}},
			}
			for i := start; i < min(start+100, count/2); i++ {
				endpoint := discoveryv1.Endpoint{
					Addresses: []string{netip.AddrFrom4([4]byte{10, byte(c + 1), byte(i >> 8), byte(i)}).String()},
				}
				if c == 0 {
					endpoint.Hostname = pointer(fmt.Sprintf("db-%d", i))
				}
				slice.Endpoints = append(slice.Endpoints, endpoint)
			}
			f.slices = append(f.slices, slice)
		}
	}
}

func pointer[T any](v T) *T { return &v }

// newBenchPlugin serves the objects.
func newBenchPlugin(b testing.TB, all fixture) *Multicluster {
	m := newTestPlugin(b, "")
	serve(m, all)
	return m
}

// benchQuery is a query as clients send it: with a cookie-less OPT of 1232 octets, unless size is 0.
func benchQuery(qname string, qtype uint16, size uint16) *dns.Msg {
	r := new(dns.Msg).SetQuestion(qname, qtype)
	if size > 0 {
		r.SetEdns0(size, false)
	}
	return r
}

// capture is what the plugin's reply is made of.
func capture(b testing.TB, m *Multicluster, r *dns.Msg, w dns.ResponseWriter) *floor {
	reply := ask(b, m, r, w)
	return &floor{answer: reply.Answer, ns: reply.Ns, extra: reply.Extra, rcode: reply.Rcode}
}

// BenchmarkUpdate is what it costs to publish a new state of one service, by the size of that service and by the number
// of others.
func BenchmarkUpdate(b *testing.B) {
	for _, bc := range []struct{ endpoints, others int }{{50, 10}, {50, 5000}, {1000, 5000}} {
		all := manyImports(bc.others)
		all.headless("db", bc.endpoints)
		config := &record.Config{Zones: []string{testZone}, TTL: 5}
		x := record.NewIndex(config)
		x.Update(testTime, all.services(config))
		imported := object.FromServiceImport(all.imports[len(all.imports)-1])
		var endpoints []*object.Endpoints
		for _, slice := range all.slices {
			endpoints = append(endpoints, object.FromEndpointSlice(slice, false))
		}
		b.Run(fmt.Sprintf("%d endpoints, %d others", bc.endpoints, bc.others), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				all.slices[0].Endpoints[0].Addresses[0] = fmt.Sprintf("10.9.0.%d", 1+i%250)
				endpoints[0] = object.FromEndpointSlice(all.slices[0], false)
				if !x.Update(testTime, map[string]*record.Service{imported.Key: record.Build(config, imported, endpoints)}) {
					b.Fatal("nothing changed")
				}
			}
		})
	}
}
