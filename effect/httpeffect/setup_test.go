package httpeffect_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/effect/httpeffect"
)

const effectID = "0123456789abcdef0123456789abcdef"

var in = effect.Input{Key: "orders:0::A-17", EffectID: effectID}

func newClient(t *testing.T, o *httpeffect.Options) *httpeffect.Client {
	t.Helper()
	c, err := httpeffect.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func classOf(err error) effect.Class {
	class, _ := effect.Classify(err)
	return class
}

// rawServer accepts connections and hands each request that was read to the
// end to answer, which returns the bytes to write and whether the connection
// stays open.
type rawServer struct {
	l        net.Listener
	mu       sync.Mutex
	requests []string // what arrived: method and X-Test
	conns    int
}

func newRawServer(t *testing.T, l net.Listener, answer func(conn, request int) (string, bool)) *rawServer {
	t.Helper()
	s := &rawServer{l: l}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns++
			n := s.conns
			s.mu.Unlock()
			wg.Go(func() { s.serve(c, n, answer) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return s
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (s *rawServer) serve(c net.Conn, conn int, answer func(conn, request int) (string, bool)) {
	defer c.Close()
	r := bufio.NewReader(c)
	for request := 1; ; request++ {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		s.mu.Lock()
		s.requests = append(s.requests, req.Method+" "+req.Header.Get("X-Test"))
		s.mu.Unlock()
		text, open := answer(conn, request)
		if _, err := io.WriteString(c, text); err != nil || !open {
			return
		}
	}
}

func (s *rawServer) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.requests {
		if strings.HasSuffix(r, " "+what) {
			n++
		}
	}
	return n
}

const ok204 = "HTTP/1.1 204 No Content\r\n\r\n"

func named(name string) http.Header { return http.Header{"X-Test": {name}} }

// transportFunc is a transport of somebody else's.
type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
