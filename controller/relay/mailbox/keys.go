// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
)

const (
	// maxKeyText bounds the text of keys, in bytes.
	maxKeyText = 16 << 10
	// maxKeys bounds the public keys of a cluster. A forged statement costs a verification with each.
	maxKeys = 8
)

const makeKey = "make one with: openssl genpkey -algorithm ed25519"

// ParseSigningKey returns the Ed25519 private key in a PEM text in PKCS #8, as openssl and cert-manager write it. An
// error does not quote the text.
func ParseSigningKey(text []byte) (ed25519.PrivateKey, error) {
	block, rest, err := nextBlock(text)
	switch {
	case err != nil:
		return nil, err
	case block == nil:
		return nil, errors.New("the signing key is no PEM text: " + makeKey)
	case block.Type != "PRIVATE KEY":
		return nil, fmt.Errorf("the signing key is a PEM block %.40q instead of PRIVATE KEY (PKCS #8, Ed25519): %s",
			block.Type, makeKey)
	}
	if more, _ := pem.Decode(rest); more != nil {
		return nil, errors.New("the signing key has more than one PEM block: a cluster signs with one key")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("the signing key is no PKCS #8: " + makeKey)
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("the signing key is %s instead of Ed25519: %s", algorithmOf(key), makeKey)
	}
	return private, nil
}

// ParsePublicKeys returns the Ed25519 public keys in a PEM text, at least one and each once, in their order.
func ParsePublicKeys(text []byte) ([]ed25519.PublicKey, error) {
	var keys []ed25519.PublicKey
	for number := 1; ; number++ {
		block, rest, err := nextBlock(text)
		switch {
		case err != nil:
			return nil, err
		case block == nil && len(bytes.TrimSpace(text)) > 0:
			return nil, fmt.Errorf("public key %d is no PEM text: use the output of openssl pkey -pubout", number)
		case block == nil && len(keys) == 0:
			return nil, errors.New("there is no public key: use the output of openssl pkey -pubout")
		case block == nil:
			return keys, nil
		case block.Type == "PRIVATE KEY":
			return nil, fmt.Errorf("public key %d is a private key: use the output of openssl pkey -pubout, "+
				"and replace that private key", number)
		case block.Type != "PUBLIC KEY":
			return nil, fmt.Errorf("public key %d is a PEM block %.40q instead of PUBLIC KEY: "+
				"use the output of openssl pkey -pubout", number, block.Type)
		}
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("public key %d cannot be parsed: use the output of openssl pkey -pubout", number)
		}
		public, ok := key.(ed25519.PublicKey)
		if !ok {
			return nil, fmt.Errorf("public key %d is %s instead of Ed25519: %s in that cluster", number,
				algorithmOf(key), makeKey)
		}
		if !slices.ContainsFunc(keys, func(known ed25519.PublicKey) bool { return known.Equal(public) }) {
			keys = append(keys, public)
		}
		if len(keys) > maxKeys {
			return nil, fmt.Errorf("there are more than %d public keys: remove those that are not used anymore", maxKeys)
		}
		text = rest
	}
}

// nextBlock returns the next PEM block of a text, nil if there is none, and what follows. Nothing but space may precede
// a block.
func nextBlock(text []byte) (*pem.Block, []byte, error) {
	if len(text) > maxKeyText {
		return nil, nil, fmt.Errorf("the keys have %d bytes: use at most %d", len(text), maxKeyText)
	}
	text = bytes.TrimSpace(text)
	if !bytes.HasPrefix(text, []byte("-----BEGIN ")) {
		return nil, text, nil
	}
	block, rest := pem.Decode(text)
	return block, rest, nil
}

// algorithmOf names the algorithm of a key of crypto/x509.
func algorithmOf(key any) string {
	switch name := fmt.Sprintf("%T", key); name {
	case "*rsa.PrivateKey", "*rsa.PublicKey":
		return "RSA"
	case "*ecdsa.PrivateKey", "*ecdsa.PublicKey":
		return "ECDSA"
	default:
		return name
	}
}
