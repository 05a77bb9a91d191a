package httpeffect_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/effect/httpeffect"
)

func dialer(f func(ctx context.Context, network, addr string) (net.Conn, error)) *http.Transport {
	return &http.Transport{DialContext: f}
}

// checkNeverLeft holds err to "nothing left the process".
func checkNeverLeft(t *testing.T, err error) {
	t.Helper()
	var e *httpeffect.Error
	if classOf(err) != effect.ClassTemporary || !errors.As(err, &e) || e.MayBeWritten || e.Status != 0 {
		t.Errorf("error %v, want temporary: nothing was written", err)
	}
}

// checkMayHaveArrived holds err to "nobody knows".
func checkMayHaveArrived(t *testing.T, err error) {
	t.Helper()
	var e *httpeffect.Error
	if classOf(err) != effect.ClassUnknown || !errors.As(err, &e) || !e.MayBeWritten {
		t.Errorf("error %v, want unknown: the request may have been written", err)
	}
}

// refusingAddr is an address where nobody listens.
func refusingAddr(t *testing.T) string {
	l := listen(t)
	defer l.Close()
	return l.Addr().String()
}

func TestConnectionRefused(t *testing.T) {
	url := "http://" + refusingAddr(t)
	_, err := newClient(t, nil).Do(t.Context(), in, httpeffect.Request{URL: url})
	checkNeverLeft(t, err)
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "dial" {
		t.Errorf("errors.As does not reach the cause of %v", err)
	}
	// A plain transport of net/http reports to traces, so it proves this too.
	_, err = newClient(t, &httpeffect.Options{Transport: &http.Transport{}}).Do(t.Context(), in, httpeffect.Request{URL: url})
	checkNeverLeft(t, err)
}

func TestNameNotResolved(t *testing.T) {
	notFound := &net.DNSError{Err: "no such host", Name: "sink.invalid", IsNotFound: true}
	base := dialer(func(context.Context, string, string) (net.Conn, error) { return nil, notFound })
	_, err := newClient(t, &httpeffect.Options{Transport: httpeffect.NewTransport(base)}).
		Do(t.Context(), in, httpeffect.Request{URL: "http://sink.invalid/"})
	checkNeverLeft(t, err)
	if !errors.Is(err, notFound) {
		t.Errorf("error %v does not wrap the DNS error", err)
	}
}

func TestTLSFailsBeforeTheRequest(t *testing.T) {
	seen := make(chan struct{}, 10)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen <- struct{}{} }))
	s.Config.ErrorLog = quiet()
	s.StartTLS()
	defer s.Close()
	_, err := newClient(t, nil).Do(t.Context(), in, httpeffect.Request{URL: s.URL}) // its certificate is unknown to us
	checkNeverLeft(t, err)

	plain := serve(t, func(http.ResponseWriter, *http.Request) { seen <- struct{}{} })
	_, err = newClient(t, nil).Do(t.Context(), in, httpeffect.Request{URL: strings.Replace(plain.URL, "http:", "https:", 1)})
	checkNeverLeft(t, err)

	if len(seen) > 0 {
		t.Error("a handler was reached")
	}
}

func TestTimeOutWhileConnecting(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	base := dialer(func(context.Context, string, string) (net.Conn, error) {
		<-stop
		return nil, errors.New("stopped")
	})
	c := newClient(t, &httpeffect.Options{Transport: httpeffect.NewTransport(base), Timeout: time.Millisecond})
	_, err := c.Do(t.Context(), in, httpeffect.Request{URL: "http://127.0.0.1:1/"})
	checkNeverLeft(t, err)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the deadline inside", err)
	}
}

func TestContextAlreadyOver(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	called := false
	foreign := transportFunc(func(*http.Request) (*http.Response, error) { called = true; return nil, errors.New("called") })
	_, err := newClient(t, &httpeffect.Options{Transport: foreign}).Do(ctx, in, httpeffect.Request{URL: "http://127.0.0.1/"})
	checkNeverLeft(t, err)
	if called || !errors.Is(err, context.Canceled) {
		t.Errorf("transport called: %v, error %v", called, err)
	}
}

func TestProxyFailsBeforeTheRequest(t *testing.T) {
	base := &http.Transport{Proxy: func(*http.Request) (*neturl, error) { return nil, errors.New("no proxy today") }}
	_, err := newClient(t, &httpeffect.Options{Transport: httpeffect.NewTransport(base)}).
		Do(t.Context(), in, httpeffect.Request{URL: "http://127.0.0.1/"})
	checkNeverLeft(t, err)
}

func TestConnectionBreaksAfterTheRequest(t *testing.T) {
	s := newRawServer(t, listen(t), func(int, int) (string, bool) { return "", false })
	_, err := newClient(t, nil).Do(t.Context(), in, httpeffect.Request{URL: "http://" + s.l.Addr().String(), Header: named("x"), Body: []byte("body")})
	checkMayHaveArrived(t, err)
	if n := s.count("x"); n != 1 {
		t.Errorf("%d requests arrived, want 1", n)
	}
}

func TestConnectionBreaksInsideTheRequest(t *testing.T) {
	l := listen(t)
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.ReadFull(c, make([]byte, 1024))
		_ = c.Close()
	}()
	_, err := newClient(t, nil).Do(t.Context(), in, httpeffect.Request{URL: "http://" + l.Addr().String(), Body: make([]byte, 8<<20)})
	checkMayHaveArrived(t, err)
}

func TestTimeOutAfterTheRequest(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-release
	})
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	_, err := newClient(t, nil).Do(ctx, in, httpeffect.Request{URL: s.URL, Body: []byte("body")})
	checkMayHaveArrived(t, err)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v does not wrap the context's", err)
	}
}

func TestForeignTransports(t *testing.T) {
	broken := errors.New("broken")
	t.Run("that reports nothing", func(t *testing.T) {
		f := transportFunc(func(*http.Request) (*http.Response, error) { return nil, broken })
		_, err := newClient(t, &httpeffect.Options{Transport: f}).Do(t.Context(), in, httpeffect.Request{URL: "http://127.0.0.1/"})
		checkMayHaveArrived(t, err)
		if !errors.Is(err, broken) {
			t.Errorf("error %v does not wrap the cause", err)
		}
	})
	t.Run("that answers nothing", func(t *testing.T) {
		f := transportFunc(func(*http.Request) (*http.Response, error) { return nil, nil }) //nolint:nilnil // the point
		_, err := newClient(t, &httpeffect.Options{Transport: f}).Do(t.Context(), in, httpeffect.Request{URL: "http://127.0.0.1/"})
		checkMayHaveArrived(t, err)
	})
	t.Run("whose connections are not counted", func(t *testing.T) {
		s := newRawServer(t, listen(t), func(int, int) (string, bool) { return "", false })
		plain := &http.Transport{}
		defer plain.CloseIdleConnections()
		_, err := newClient(t, &httpeffect.Options{Transport: plain}).Do(t.Context(), in, httpeffect.Request{URL: "http://" + s.l.Addr().String()})
		checkMayHaveArrived(t, err)
	})
}
