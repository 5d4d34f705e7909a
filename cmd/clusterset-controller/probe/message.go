// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// A message begins with eight bytes that say what it is, in a line of their own
// so that servers of text protocols refuse it at once. Eight bytes follow that a
// request chooses, and four with the size of the message. In a reply two texts
// follow, each after a byte with its length. What is left of the size is filled
// by the request, and repeated by the reply.
const (
	asks, answers = "probe?\r\n", "probe!\r\n"
	nonceSize     = 8
	headSize      = len(asks) + nonceSize + 4

	// minSize has room for a reply, and passes every network.
	minSize = 512
	// maxSize is the payload of the largest UDP packet over IPv4.
	maxSize = 65507
	// maxText is the length of a text.
	maxText = 200
)

var errForeign = errors.New("the answer is not that of a probe")

// newRequest is one of a size.
func newRequest(size int, nonce [nonceSize]byte) []byte {
	request := make([]byte, size)
	copy(request, asks)
	copy(request[len(asks):], nonce[:])
	binary.BigEndian.PutUint32(request[len(asks)+nonceSize:], uint32(size))
	for i := headSize; i < size; i++ {
		request[i] = byte(i*7) ^ nonce[i%nonceSize]
	}
	return request
}

// requestSize reads the head of a request.
func requestSize(head []byte) (int, error) {
	if len(head) < headSize || string(head[:len(asks)]) != asks {
		return 0, errors.New("no request of a probe")
	}
	size := binary.BigEndian.Uint32(head[len(asks)+nonceSize:])
	if size < minSize || size > maxSize {
		return 0, fmt.Errorf("a request of %d bytes: from %d to %d", size, minSize, maxSize)
	}
	return int(size), nil
}

// answer makes a whole request its reply.
func answer(request []byte, identity, client string) {
	copy(request, answers)
	at := headSize
	for _, text := range []string{identity, client} {
		text = text[:min(len(text), maxText)]
		request[at] = byte(len(text))
		at += 1 + copy(request[at+1:], text)
	}
}

// readReply holds a reply against its request.
func readReply(request, reply []byte) (identity, client string, err error) {
	if len(reply) != len(request) || string(reply[:len(answers)]) != answers ||
		!bytes.Equal(reply[len(answers):headSize], request[len(asks):headSize]) {
		return "", "", errForeign
	}
	at := headSize
	for _, text := range []*string{&identity, &client} {
		length := int(reply[at])
		if length > maxText {
			return "", "", errForeign
		}
		*text = string(reply[at+1 : at+1+length])
		at += 1 + length
	}
	if !bytes.Equal(reply[at:], request[at:]) {
		return "", "", errors.New("the answer repeats other bytes than were sent")
	}
	return identity, client, nil
}
