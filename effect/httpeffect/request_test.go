package httpeffect_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/effect/httpeffect"
)

// capture answers 200 and hands the request it saw, with its body, to the test.
func capture(t *testing.T) (url string, seen func() (*http.Request, string)) {
	t.Helper()
	type arrival struct {
		r    *http.Request
		body string
	}
	arrivals := make(chan arrival, 1)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		arrivals <- arrival{r, string(b)}
	})
	return s.URL, func() (*http.Request, string) { a := <-arrivals; return a.r, a.body }
}

func TestHeadersThatTheClientSets(t *testing.T) {
	traced := effect.Input{EffectID: effectID, TraceParent: "00-aa-bb-01", TraceState: "vendor=1"}
	tests := []struct {
		name string
		o    *httpeffect.Options
		in   effect.Input
		set  http.Header
		want map[string]string // "" = must be missing
	}{
		{"defaults", nil, traced, nil, map[string]string{"Idempotency-Key": effectID, "Traceparent": "00-aa-bb-01", "Tracestate": "vendor=1"}},
		{"no trace context", nil, effect.Input{EffectID: effectID, TraceState: "vendor=1"}, nil, map[string]string{"Traceparent": "", "Tracestate": ""}},
		{"another name", &httpeffect.Options{KeyHeader: "Request-Id"}, traced, nil, map[string]string{"Idempotency-Key": "", "Request-Id": effectID}},
		{"off", &httpeffect.Options{NoKeyHeader: true}, effect.Input{}, nil, map[string]string{"Idempotency-Key": ""}},
		{
			"the caller's own", nil, traced,
			http.Header{"idempotency-key": {"mine"}, "Traceparent": {"00-cc-dd-00"}},
			map[string]string{"Idempotency-Key": "mine", "Traceparent": "00-cc-dd-00", "Tracestate": ""},
		},
		{"trace context that cannot be sent", nil, effect.Input{EffectID: effectID, TraceParent: "00\r\nX-Evil: 1"}, nil, map[string]string{"Traceparent": "", "X-Evil": ""}},
		{"trace state that cannot be sent", nil, effect.Input{EffectID: effectID, TraceParent: "00-aa-bb-01", TraceState: "a\x00b"}, nil, map[string]string{"Traceparent": "00-aa-bb-01", "Tracestate": ""}},
		{"others", nil, traced, http.Header{"Content-Type": {"application/json"}, "X-Empty": {""}}, map[string]string{"Content-Type": "application/json"}},
	}
	for _, body := range []string{"", "body"} {
		for _, tt := range tests {
			t.Run(tt.name+" "+body, func(t *testing.T) {
				url, seen := capture(t)
				_, err := newClient(t, tt.o).Do(t.Context(), tt.in, httpeffect.Request{URL: url, Header: tt.set, Body: []byte(body)})
				if err != nil {
					t.Fatal(err)
				}
				r, got := seen()
				if got != body || r.Method != http.MethodPost || r.ContentLength != int64(len(body)) {
					t.Errorf("%s with body %q of %d", r.Method, got, r.ContentLength)
				}
				for name, want := range tt.want {
					if values := strings.Join(r.Header.Values(name), ", "); values != want {
						t.Errorf("header %s = %q, want %q", name, values, want)
					}
				}
			})
		}
	}
}

func TestRequestOnTheWire(t *testing.T) {
	for method, want := range map[string]string{"POST": "0", "PATCH": "0", "PUT": "0", "GET": "", "HEAD": "", "OPTIONS": "", "DELETE": ""} {
		l := listen(t)
		length := make(chan []string, 1)
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			r := bufio.NewReader(c)
			var lines []string
			for {
				line, err := r.ReadString('\n')
				if err != nil || line == "\r\n" {
					break
				}
				lines = append(lines, strings.ToLower(strings.TrimSpace(line)))
			}
			length <- lines
			_, _ = io.WriteString(c, ok204)
		}()
		if _, err := newClient(t, nil).Do(t.Context(), in, httpeffect.Request{Method: method, URL: "http://" + l.Addr().String()}); err != nil {
			t.Errorf("%s: %v", method, err)
		}
		_ = l.Close()
		var contentLength string
		keys := 0
		for _, line := range <-length {
			if v, ok := strings.CutPrefix(line, "content-length: "); ok {
				contentLength = v
			}
			if strings.HasPrefix(line, "transfer-encoding") {
				t.Errorf("%s without a body is sent with %q", method, line)
			}
			if line == "idempotency-key: "+effectID {
				keys++
			}
		}
		if contentLength != want || keys != 1 {
			t.Errorf("%s without a body: content-length %q, want %q; %d key headers", method, contentLength, want, keys)
		}
	}
}

func TestBasicAuthenticationFromTheURL(t *testing.T) {
	url, seen := capture(t)
	withUser := strings.Replace(url, "http://", "http://me:secret@", 1)
	if _, err := newClient(t, nil).Do(t.Context(), in, httpeffect.Request{URL: withUser}); err != nil {
		t.Fatal(err)
	}
	r, _ := seen()
	if user, password, _ := r.BasicAuth(); user != "me" || password != "secret" {
		t.Errorf("user %q password %q", user, password)
	}
	if _, err := newClient(t, nil).Do(t.Context(), in, httpeffect.Request{URL: withUser, Header: http.Header{"Authorization": {"Bearer x"}}}); err != nil {
		t.Fatal(err)
	}
	if r, _ := seen(); r.Header.Get("Authorization") != "Bearer x" {
		t.Errorf("authorization %q, want the caller's own", r.Header.Get("Authorization"))
	}
}

func TestTheCallersHeaderIsNotChanged(t *testing.T) {
	url, _ := capture(t)
	h := http.Header{"X-Mine": {"1"}}
	if _, err := newClient(t, nil).Do(t.Context(), in, httpeffect.Request{URL: url, Header: h}); err != nil {
		t.Fatal(err)
	}
	if len(h) != 1 {
		t.Errorf("header %v", h)
	}
}

func TestRequestsThatCannotBeBuilt(t *testing.T) {
	const ok = "http://127.0.0.1/"
	tests := []struct {
		name string
		in   effect.Input
		r    httpeffect.Request
		want string
	}{
		{"scheme", in, httpeffect.Request{URL: "ftp://127.0.0.1/"}, `scheme "ftp"`},
		{"relative", in, httpeffect.Request{URL: "/orders"}, `scheme ""`},
		{"empty", in, httpeffect.Request{}, `scheme ""`},
		{"no host", in, httpeffect.Request{URL: "http:///orders"}, "no host"},
		{"only a port", in, httpeffect.Request{URL: "http://:80/"}, "no host"},
		{"not a URL", in, httpeffect.Request{URL: "http://me:secret@127.0.0.1/%zz"}, "cannot be parsed"},
		{"method", in, httpeffect.Request{Method: "PO ST", URL: ok}, `method "PO ST"`},
		{"trace", in, httpeffect.Request{Method: "TRACE", URL: ok}, `method "TRACE"`},
		{"connect", in, httpeffect.Request{Method: "CONNECT", URL: ok}, `method "CONNECT"`},
		{"header name", in, httpeffect.Request{URL: ok, Header: http.Header{"X Y": {"1"}}}, `header name "X Y"`},
		{"header value", in, httpeffect.Request{URL: ok, Header: http.Header{"X-Y": {"secret\r\nX-Evil: 1"}}}, "value of header X-Y"},
		{"no effect id", effect.Input{Key: "k"}, httpeffect.Request{URL: ok}, "no effect id"},
		{"effect id with a line break", effect.Input{EffectID: "a\nb"}, httpeffect.Request{URL: ok}, "no effect id"},
	}
	c := newClient(t, &httpeffect.Options{Transport: transportFunc(func(*http.Request) (*http.Response, error) {
		t.Error("the transport was called")
		return nil, io.EOF
	})})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := c.Do(t.Context(), tt.in, tt.r)
			if classOf(err) != effect.ClassPermanent || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want permanent with %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("error %q shows a secret", err)
			}
		})
	}
}
