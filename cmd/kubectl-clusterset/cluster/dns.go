// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DNSSelector finds the pods of the cluster's DNS in kube-system, as kubeadm and most distributions label them.
const DNSSelector = "k8s-app=kube-dns"

// exchangeTimeout bounds one exchange, and has room for a server that asks others.
const exchangeTimeout = 10 * time.Second

// A DNSServer is a DNS server of a cluster. The caller closes it.
type DNSServer struct {
	// Name identifies it in output.
	Name string
	// Close releases the connection to it.
	Close func()

	address string
}

// DNSAt returns the server at an address, whose default port is 53.
func DNSAt(address string) *DNSServer {
	if _, _, err := net.SplitHostPort(address); err != nil {
		address = net.JoinHostPort(strings.Trim(address, "[]"), "53")
	}
	return &DNSServer{Name: address, Close: func() {}, address: address}
}

// DNS returns the server at DNSAddress or, without one, a pod of the cluster's DNS: see DNSPods.
func (c *Cluster) DNS(ctx context.Context) (*DNSServer, error) {
	if c.DNSAddress != "" {
		return DNSAt(c.DNSAddress), nil
	}
	servers, err := c.DNSPods(ctx, metav1.NamespaceSystem, DNSSelector, 1)
	if err != nil {
		return nil, fmt.Errorf("%w: set the address of the cluster's DNS with --dns", err)
	}
	return servers[0], nil
}

// DNSPods returns the ready pods that a label selector finds, at least one and at most most. Queries go through a port-forward.
// The caller closes the servers, even those returned with an error.
func (c *Cluster) DNSPods(ctx context.Context, namespace, selector string, most int) (servers []*DNSServer, err error) {
	pods, err := c.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !isReady(pod) || len(servers) == most {
			continue
		}
		address, stop, err := c.Forward(ctx, pod.Namespace, pod.Name, PortOf(pod, "dns-tcp", 53))
		if err != nil {
			return servers, err
		}
		servers = append(servers, &DNSServer{Name: "pod " + pod.Namespace + "/" + pod.Name, Close: stop, address: address})
	}
	if len(servers) == 0 {
		return nil, fmt.Errorf("no pod with the label %s is ready in namespace %s", selector, namespace)
	}
	return servers, nil
}

func isReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// An Answer is the answer of a server to one query.
type Answer struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Rcode string `json:"rcode"`
	// Records are the data of the records of that type, sorted.
	Records []string `json:"records"`
}

// Text is the answer as text.
func (a Answer) Text() string {
	switch {
	case a.Rcode != "NOERROR":
		return a.Rcode
	case len(a.Records) == 0:
		return "no records"
	}
	return strings.Join(a.Records, " ")
}

// Ask queries the records of a name and type, such as A, over TCP, as a port-forward needs. A negative answer is no error.
func (s *DNSServer) Ask(ctx context.Context, name, kind string) (Answer, error) {
	question := new(dns.Msg).SetQuestion(dns.Fqdn(name), dns.StringToType[kind])
	reply, _, err := (&dns.Client{Net: "tcp", Timeout: exchangeTimeout}).ExchangeContext(ctx, question, s.address)
	if err != nil {
		return Answer{}, fmt.Errorf("query %s for %s %s: %w", s.Name, name, kind, err)
	}
	answer := Answer{Name: name, Type: kind, Rcode: dns.RcodeToString[reply.Rcode], Records: []string{}}
	for _, record := range reply.Answer {
		if dns.TypeToString[record.Header().Rrtype] == kind {
			answer.Records = append(answer.Records, strings.TrimPrefix(record.String(), record.Header().String()))
		}
	}
	slices.Sort(answer.Records)
	return answer, nil
}
