// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// A gateway is what makes a member's API server hostile or broken: it stands in
// front of it, and answers in its stead or changes what it says.
type gateway struct {
	*httptest.Server
	// answers takes requests before the API server does; nil for none.
	answers atomic.Pointer[http.HandlerFunc]
	// says changes each line of what the API server says: one is an event of a
	// watch, or all of an answer. nil for nothing.
	says atomic.Pointer[func(string) string]
	// changed counts the lines that were, watches the watches of slices.
	changed, watches atomic.Int64
}

// gateway puts one in the way from west to east.
func (b *bed) gateway() *gateway {
	b.Helper()
	target, err := url.Parse(b.west.URL())
	b.must(err)
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(b.west.Config()))
	b.must(err)
	g := &gateway{}
	quiet := log.New(io.Discard, "", 0)
	onwards := &httputil.ReverseProxy{
		Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(target)
			request.Out.Header.Set("Accept", "application/json") // which has lines
		},
		Transport:      transport,
		FlushInterval:  -1,
		ErrorLog:       quiet,
		ModifyResponse: g.change,
	}
	g.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answers := g.answers.Load(); answers != nil {
			(*answers)(w, r)
			return
		}
		onwards.ServeHTTP(w, r)
	}))
	g.EnableHTTP2, g.Config.ErrorLog = true, quiet
	g.StartTLS()
	b.Cleanup(func() {
		// In this order: Close waits for connections that are in use, and the controller would make another one.
		b.must(g.Listener.Close())
		g.CloseClientConnections()
		g.Close()
	})

	p := pair{b.east, b.west}
	config, err := clientcmd.Load(b.credential(p))
	b.must(err)
	for _, c := range config.Clusters {
		c.Server = g.URL
		c.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.Certificate().Raw})
	}
	kubeconfig, err := clientcmd.Write(*config)
	b.must(err)
	b.replace(p, kubeconfig)
	b.eventually("watch by the gateway", func(context.Context) error {
		if g.watches.Load() == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	b.reads(p)
	return g
}

// answer makes the gateway answer from now on, and ends what is under way.
func (g *gateway) answer(with http.HandlerFunc) {
	g.answers.Store(&with)
	g.CloseClientConnections()
}

// forward makes it pass on what is asked from now on.
func (g *gateway) forward() {
	g.answers.Store(nil)
	g.CloseClientConnections()
}

// change is what the API server's answers are changed by: they come in lines,
// and go in the form that the controller reads.
func (g *gateway) change(response *http.Response) error {
	if response.StatusCode != http.StatusOK {
		return nil
	}
	watch := response.Request.URL.Query().Get("watch") == "true"
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
	gateway *gateway
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
		l.encoded = protobufOf([]byte(line))
		if l.watch {
			l.encoded = frameOf([]byte(line))
		}
	}
	n := copy(p, l.encoded)
	l.encoded = l.encoded[n:]
	return n, nil
}

// protobufOf encodes an object, and leaves alone what is none.
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

// filler is the key of an annotation that is filled up: to decode a text that is as large takes seconds.
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

// frameOf encodes an event of a watch, with its length before it. One that is
// none is so afterwards, too.
func frameOf(text []byte) []byte {
	var event struct {
		Type   string
		Object json.RawMessage
	}
	encoded := text
	if err := json.Unmarshal(text, &event); err == nil {
		encoded, _ = (&metav1.WatchEvent{Type: event.Type, Object: runtime.RawExtension{Raw: protobufOf(event.Object)}}).Marshal()
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(encoded))), encoded...)
}

// servers are how a gateway answers in the stead of an API server.
var servers = []struct {
	name    string
	answers http.HandlerFunc
}{
	{"its API server fails (500)", status(http.StatusInternalServerError)},
	{"its API server is unavailable (503)", status(http.StatusServiceUnavailable)},
	{"its API server throttles (429)", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "1")
		status(http.StatusTooManyRequests)(w, r)
	}},
	{"its API server does not answer", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
	{"its API server answers with a page", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<html><body>Sign in to the network</body></html>") //nolint:errcheck // the reader notices
	}},
	{"its API server answers with half a list", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSliceList","metadata":{"resourceVersion":"1"},"items":[{"meta`) //nolint:errcheck // the reader notices
	}},
	{"its API server redirects", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://127.0.0.1:1"+r.URL.Path, http.StatusTemporaryRedirect)
	}},
	{"its API server closes every connection", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
}

// status answers with an error as an API server does.
func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, http.StatusText(code), code)
	}
}

// silencesOfTheServer: the API server of west is there for east, and no use.
var silencesOfTheServer = func() (silences []silence) {
	for _, server := range servers {
		var g *gateway
		silences = append(silences, silence{
			name: server.name,
			begin: func(b *bed) {
				g = b.gateway()
				g.answer(server.answers)
			},
			heal: func(b *bed) {
				if !b.Failed() { // else there may be none
					g.forward()
				}
			},
			pairs: toEast,
		})
	}
	return silences
}()

// reads waits until the reader reads the writer by the present credential.
func (b *bed) reads(p pair) {
	b.Helper()
	b.eventually("reading "+p.writer.Name(), func(context.Context) error {
		for _, name := range []string{"clusterset_controller_member_connected", "clusterset_controller_member_synced"} {
			if err := p.is(name, 1); err != nil {
				return err
			}
		}
		return nil
	})
}

// is asserts what the reader's metric says of the writer.
func (p pair) is(name string, value float64) error {
	metric, err := p.reader.metric(name, map[string]string{"cluster": p.writer.Name()})
	if err == nil && metric.GetGauge().GetValue() != value {
		err = fmt.Errorf("%s is %v", name, metric)
	}
	return err
}
