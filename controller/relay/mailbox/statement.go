// SPDX-License-Identifier: Apache-2.0

// Package mailbox is the form in which a cluster leaves its slices and its heartbeat on a relay, for clusters that read
// it there (docs/design/relay.md): keys, signed statements, the ledger of all records, and their conversion to and from
// the objects of the relay. It is pure.
package mailbox

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// version is that of the statements.
const version = 1

// A kind begins the text that is signed, so that one kind of statement cannot pass as the other.
type kind string

const (
	kindSlice     kind = "clusterset-dns relay slice\n"
	kindHeartbeat kind = "clusterset-dns relay heartbeat\n"
)

// Bounds of a statement, in bytes of text.
const (
	maxSliceStatement     = 2 << 10
	maxHeartbeatStatement = 64 << 10
)

// maxCounter is the highest counter: JSON readers handle greater integers differently.
const maxCounter = 1<<53 - 1

// Reasons for which a statement or record is refused. None of them says who changed it: a relay may.
var (
	// ErrSignature: no key of the cluster has signed it.
	ErrSignature = errors.New("no public key of the cluster verifies the signature")
	// ErrVersion: a controller of a later version wrote it.
	ErrVersion = errors.New("the version of the statement is unknown: upgrade this controller")
	// ErrSource: it is of another cluster or set than expected.
	ErrSource = errors.New("the statement is of another cluster")
	// ErrMalformed: it cannot be parsed, or the record is not what the statement says.
	ErrMalformed = errors.New("malformed")
)

// ErrTooLarge is the error of an EndpointSlice that no record can have.
var ErrTooLarge = errors.New("the EndpointSlice is too large")

// A Source is the cluster that signs, and the set in which it does.
type Source struct {
	Cluster string     `json:"cluster"`
	Set     export.Set `json:"set,omitempty"`
}

// A Digest is a SHA-256.
type Digest [sha256.Size]byte

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Digest) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(d)) {
		return fmt.Errorf("%w: a digest of %d characters", ErrMalformed, len(text))
	}
	_, err := hex.Decode(d[:], text)
	return err
}

// String returns the digest as text.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// NextCounter returns the counter of the next statement of a key: the time of the source in milliseconds, or one more
// than the highest that the key has used, if that is greater.
func NextCounter(now time.Time, highest int64) int64 { return max(now.UnixMilli(), highest+1, 1) }

// sign returns a statement with its signature: the signature in base64, a space, and the statement.
func sign(kind kind, key ed25519.PrivateKey, statement any) (string, error) {
	text, err := json.Marshal(statement)
	if err != nil {
		return "", err
	}
	signature := ed25519.Sign(key, append([]byte(kind), text...))
	return base64.StdEncoding.EncodeToString(signature) + " " + string(text), nil
}

// header is what all statements begin with.
type header struct {
	Version int `json:"version"`
	Source
	Counter int64 `json:"counter"`
}

// verify parses a statement into a new T if one of the keys has signed it as one of this kind and of the source.
func verify[T any](kind kind, most int, keys []ed25519.PublicKey, source Source, signed string) (*T, error) {
	encoded := base64.StdEncoding.EncodedLen(ed25519.SignatureSize)
	if len(signed) > most || len(signed) < encoded+1 || signed[encoded] != ' ' {
		return nil, fmt.Errorf("%w statement of %d bytes", ErrMalformed, len(signed))
	}
	signature, err := base64.StdEncoding.Strict().DecodeString(signed[:encoded])
	if err != nil || len(signature) != ed25519.SignatureSize || strings.ContainsAny(signed[:encoded], "\r\n") {
		return nil, fmt.Errorf("%w signature", ErrMalformed)
	}
	text := signed[encoded+1:]
	if !verifies(keys, []byte(string(kind)+text), signature) {
		return nil, ErrSignature
	}
	// Only the source itself is parsed from here on.
	var is header
	if err := json.Unmarshal([]byte(text), &is); err != nil {
		return nil, fmt.Errorf("%w statement: %w", ErrMalformed, err)
	}
	switch {
	case is.Version != version:
		return nil, fmt.Errorf("%w (version %d)", ErrVersion, is.Version)
	case is.Source != source:
		return nil, fmt.Errorf("%w: %.100q of %.100q instead of %q of %q", ErrSource, is.Cluster, is.Set,
			source.Cluster, source.Set)
	case is.Counter <= 0 || is.Counter > maxCounter:
		return nil, fmt.Errorf("%w counter %d", ErrMalformed, is.Counter)
	}
	statement := new(T)
	if err := json.Unmarshal([]byte(text), statement); err != nil {
		return nil, fmt.Errorf("%w statement: %w", ErrMalformed, err)
	}
	return statement, nil
}

func verifies(keys []ed25519.PublicKey, text, signature []byte) bool {
	for _, key := range keys {
		if len(key) == ed25519.PublicKeySize && ed25519.Verify(key, text, signature) {
			return true
		}
	}
	return false
}
