// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"sync"
	"time"
)

// certificates are those of all simulated API servers: one authority, and one
// certificate for every name.
type certificates struct {
	authority []byte // PEM
	server    *tls.Config
	impostor  *tls.Config // of a server that has the names and another authority
}

// names are the hosts that the certificate is for.
var names = []string{"east", "west", "north", "south", "dual", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"}

// pki makes the certificates once. They are valid at any simulated time.
var pki = sync.OnceValue(func() (c certificates) {
	c.authority, c.server = selfSigned(1)
	_, c.impostor = selfSigned(2)
	return c
})

func selfSigned(serial int64) (authority []byte, server *tls.Config) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "simulation"}, DNSNames: names,
		NotBefore: time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}), &tls.Config{
		MinVersion:   tls.VersionTLS13,
		NextProtos:   []string{"h2", "http/1.1"},
		Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}},
	}
}
