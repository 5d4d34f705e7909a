// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"net/netip"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
)

// An Address is where an API server is reached.
type Address struct {
	// Server is its URL.
	Server string
	// Name is what its certificate is for, empty where that is the host of
	// Server.
	Name string
}

// own is where a configuration leads.
func own(config *rest.Config) Address {
	return Address{Server: config.Host, Name: config.ServerName}
}

// reach chooses where the reader reaches its source, and says so where that is
// not what was asked for: what was there stays, since people may reach an API
// server by another way than clusters do.
func (o Options) reach(ctx context.Context, l *link) Address {
	users := own(l.source.Config)
	if server := o.Servers[l.source.Context]; server != "" {
		return Address{Server: server, Name: users.Name}
	}
	if l.secret == nil {
		return users
	}
	// What the controller would refuse leads nowhere.
	credential, err := member.ParseKubeconfig(l.secret.Data[member.KubeconfigKey])
	if err != nil || own(credential.Config) == users {
		return users
	}
	had := own(credential.Config)
	if l.misled(ctx) {
		o.Teller.Did("%s is to read %s at %s, and not at %s as in Secret %s, where its controller does not find it: for another address use --server %s=https://…",
			l.readerID, l.sourceID, users.Server, had.Server, l.secret.Name, l.source.Context)
		return users
	}
	o.Teller.Did("%s goes on reading %s at %s, as in Secret %s, and not at %s: for another address use --server %s=https://…",
		l.readerID, l.sourceID, had.Server, l.secret.Name, users.Server, l.source.Context)
	return had
}

// misled tells whether the reader's controller says that the address in the
// Secret is wrong. Who may not read what it says believes the Secret.
func (l *link) misled(ctx context.Context) bool {
	events, err := l.reader.Events(ctx, l.secret)
	if err != nil {
		return false
	}
	var heard time.Time
	if lease, err := l.reader.MemberLease(ctx, memberstate.LeasePrefix+l.sourceID); err == nil && lease != nil &&
		lease.Spec.RenewTime != nil {
		heard = lease.Spec.RenewTime.Time
	}
	return misleads(events, heard)
}

// misleads tells whether Events, the newest first, say that an address leads
// nowhere or to another cluster. heard is when the member was heard last. A
// token that is refused is no fault of the address.
func misleads(events []corev1.Event, heard time.Time) bool {
	var reading, identity bool // the newest of each alone holds
	for i := range events {
		event := &events[i]
		switch event.Reason {
		case memberstate.EventMemberUnreachable:
			refused := strings.Contains(event.Message, "nauthorized")
			if !reading && !refused && !heard.After(cluster.EventTime(event).Add(time.Second)) {
				return true
			}
			reading = true
		case memberstate.EventMemberReachable, memberstate.EventMemberCredentialInvalid:
			reading = true
		case memberstate.EventMemberIdentityMismatch:
			if !identity {
				return true
			}
		case memberstate.EventMemberIdentityRestored:
			identity = true
		}
	}
	return false
}

// loopback says whether an address leads to the machine of whoever uses it.
func loopback(server string) bool {
	address, err := url.Parse(server)
	if err != nil {
		return false
	}
	if address.Hostname() == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(address.Hostname())
	return err == nil && ip.IsLoopback()
}
