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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// A Gateway is a proxy between a controller and the API server of a member. It changes responses: it requests JSON, in
// which each line is a watch event or an entire list, and sends protobuf to the controller.
type Gateway struct {
	says atomic.Pointer[func(string) string]
	// changed counts changed lines, and watches the watches of EndpointSlices.
	changed, watches atomic.Int64
}

// gateway connects the reader to the source through a gateway, until the scenario ends.
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

// Answer changes the response.
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

// lines reads JSON lines, changes them, and encodes them as protobuf.
type lines struct {
	gateway *Gateway
	watch   bool
	in      *bufio.Reader
	encoded []byte // the rest of an encoded line
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

// protobufOf encodes an object; other text is returned unchanged.
func protobufOf(text []byte) []byte {
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
	if err != nil {
		return text
	}
	encoded, err := runtime.Encode(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), object)
	if err != nil {
		return text
	}
	return encoded
}

// frameOf encodes a watch event with its length in front. Other text gets a length, too.
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
