// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// A Gateway is between a controller and the API server of a member, and changes what the API server says. It asks the
// API server for JSON: each line is an event of a watch or all of a list. The controller gets protobuf.
type Gateway struct {
	says atomic.Pointer[func(string) string]
	// changed counts the lines that were changed, watches the watches of slices.
	changed, watches atomic.Int64
}

// gateway has the reader read the source through a gateway, until the scenario ends.
func (s *Set) gateway(p Pair) *Gateway {
	g := &Gateway{}
	s.kubeconfig(p, s.Through(s.T, p.Reader.Name, p.Source.Name, g))
	s.Eventually("a watch through the gateway", func() error {
		if g.watches.Load() == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	for _, name := range []string{"clusterset_controller_member_connected", "clusterset_controller_member_synced"} {
		p.Reader.ExpectMetric(1, name, "member", p.Source.Name)
	}
	return g
}

// Ask changes the header of a request to the API server.
func (*Gateway) Ask(header http.Header) { header.Set("Accept", "application/json") }

// Answer changes its response.
func (g *Gateway) Answer(response *http.Response) error {
	if response.StatusCode != http.StatusOK {
		return nil
	}
	watch := response.Request.URL.Query().Get("watch") != ""
	form := runtime.ContentTypeProtobuf
	if watch {
		form += ";stream=watch"
		if strings.HasSuffix(response.Request.URL.Path, "/endpointslices") {
			g.watches.Add(1)
		}
	}
	response.Header.Set("Content-Type", form)
	response.Header.Del("Content-Length")
	response.ContentLength = -1
	response.Body = &lines{gateway: g, watch: watch, in: bufio.NewReader(response.Body), Closer: response.Body}
	return nil
}

// lines reads lines, changes them, and encodes them.
type lines struct {
	gateway *Gateway
	watch   bool
	in      *bufio.Reader
	encoded []byte // what is left of a line
	io.Closer
}

func (l *lines) Read(p []byte) (int, error) {
	if len(l.encoded) == 0 {
		line, err := l.in.ReadString('\n')
		if line == "" {
			return 0, err
		}
		if says := l.gateway.says.Load(); says != nil {
			if changed := (*says)(line); changed != line {
				l.gateway.changed.Add(1)
				line = changed
			}
		}
		if l.watch {
			l.encoded = frameOf([]byte(line))
		} else {
			l.encoded = protobufOf([]byte(line))
		}
	}
	n := copy(p, l.encoded)
	l.encoded = l.encoded[n:]
	return n, nil
}

// protobufOf encodes an object, and returns what is none as it is.
func protobufOf(text []byte) []byte {
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
	if err != nil {
		return text
	}
	fill(object)
	encoded, err := runtime.Encode(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), object)
	if err != nil {
		return text
	}
	return encoded
}

// filler is the key of an annotation that is filled up: to decode a text of that size takes seconds.
const filler = "example.org/filler"

// fill makes the annotation of an object, or of those of a list, larger than anything that a controller reads.
func fill(object runtime.Object) {
	each := func(object runtime.Object) error {
		if object, err := meta.Accessor(object); err == nil && object.GetAnnotations()[filler] != "" {
			object.GetAnnotations()[filler] = strings.Repeat("x", 5<<20)
		}
		return nil
	}
	if meta.IsListType(object) {
		meta.EachListItem(object, each) //nolint:errcheck // each has no error
		return
	}
	each(object) //nolint:errcheck // as above
}

// frameOf encodes an event of a watch, with its length before it. What is no event gets a length, too.
func frameOf(text []byte) []byte {
	var event struct {
		Type   string
		Object json.RawMessage
	}
	encoded := text
	if err := json.Unmarshal(text, &event); err == nil {
		encoded, _ = (&metav1.WatchEvent{
			Type: event.Type, Object: runtime.RawExtension{Raw: protobufOf(event.Object)},
		}).Marshal()
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(encoded))), encoded...)
}
