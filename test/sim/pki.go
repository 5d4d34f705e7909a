// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"crypto/tls"
	"fmt"
	"sync"

	selfsigned "github.com/clusterset-dns/clusterset-dns/test/pki"
)

// certificates are the certificates of all simulated API servers: one authority, and one certificate with all names.
type certificates struct {
	authority []byte // PEM
	server    *tls.Config
	impostor  *tls.Config // of a server with the same names, but another authority
}

// names returns the host names in the certificate.
func names() []string {
	names := []string{"east", "west", "north", "south", "dual"}
	for i := range 8 { // the clusters of schedules
		names = append(names, fmt.Sprintf("c%d", i+1))
	}
	return names
}

// pki makes the certificates once. They are valid at every simulated time.
var pki = sync.OnceValue(func() (c certificates) {
	c.authority, c.server = serverConfig()
	_, c.impostor = serverConfig()
	return c
})

func serverConfig() (authority []byte, server *tls.Config) {
	authority, key, err := selfsigned.SelfSigned(names())
	if err != nil {
		panic(err)
	}
	pair, err := tls.X509KeyPair(authority, key)
	if err != nil {
		panic(err)
	}
	return authority, &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"h2", "http/1.1"}, Certificates: []tls.Certificate{pair},
	}
}
