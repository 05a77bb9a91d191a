package httpeffect_test

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/effect/httpeffect"
)

type neturl = url.URL

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

func TestTheAnswerIsHandedOver(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Booking", "b-1")
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"why":"no such customer"}`)
	})
	resp, err := newClient(t, nil).Do(t.Context(), in, httpeffect.Request{URL: s.URL})
	if classOf(err) != effect.ClassPermanent {
		t.Fatal(err)
	}
	if resp.Status != 422 || resp.Header.Get("X-Booking") != "b-1" || string(resp.Body) != `{"why":"no such customer"}` || resp.Truncated {
		t.Errorf("response %+v", resp)
	}
	if strings.Contains(err.Error(), "customer") {
		t.Errorf("error %q shows the body", err)
	}
}

func TestALongAnswerIsCut(t *testing.T) {
	for size, truncated := range map[int]bool{9: false, 10: false, 11: true, 1 << 20: true} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", size)) })
		resp, err := newClient(t, &httpeffect.Options{MaxResponseBytes: 10}).Do(t.Context(), in, httpeffect.Request{URL: s.URL})
		if err != nil || resp.Truncated != truncated || len(resp.Body) != min(size, 10) {
			t.Errorf("%d bytes: %v, %d read, truncated %v", size, err, len(resp.Body), resp.Truncated)
		}
	}
}

// The sink said its status and broke off: a refusal stands, a success does not.
func TestTheAnswerBreaksOff(t *testing.T) {
	for status, want := range map[string]effect.Class{
		"200 OK":                  effect.ClassUnknown,
		"201 Created":             effect.ClassUnknown,
		"400 Bad Request":         effect.ClassPermanent,
		"429 Too Many Requests":   effect.ClassTemporary,
		"503 Service Unavailable": effect.ClassUnknown,
	} {
		raw := newRawServer(t, listen(t), func(int, int) (string, bool) {
			return "HTTP/1.1 " + status + "\r\nContent-Length: 100\r\n\r\nhalf", false
		})
		resp, err := newClient(t, nil).Do(t.Context(), in, httpeffect.Request{URL: "http://" + raw.l.Addr().String()})
		if classOf(err) != want || string(resp.Body) != "half" {
			t.Errorf("%s: %v with %q, want %v", status, err, resp.Body, want)
		}
		if want == effect.ClassUnknown && status[0] == '2' && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: error %v does not wrap the cause", status, err)
		}
	}
}

// More than is kept breaks off: the success stands, as nobody reads so far.
func TestTheAnswerBreaksOffBehindTheLimit(t *testing.T) {
	raw := newRawServer(t, listen(t), func(int, int) (string, bool) {
		return "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789", false
	})
	resp, err := newClient(t, &httpeffect.Options{MaxResponseBytes: 4}).Do(t.Context(), in, httpeffect.Request{URL: "http://" + raw.l.Addr().String()})
	if err != nil || string(resp.Body) != "0123" || !resp.Truncated {
		t.Errorf("%v with %q", err, resp.Body)
	}
}

type closeCheck struct {
	io.Reader
	closed *bool
}

func (c closeCheck) Close() error { *c.closed = true; return nil }

func TestTheBodyIsAlwaysClosed(t *testing.T) {
	for _, status := range []int{200, 303, 404, 429, 500} {
		for name, body := range map[string]io.Reader{
			"short": strings.NewReader("ok"), "long": strings.NewReader(strings.Repeat("x", 100)),
			"broken": io.MultiReader(strings.NewReader("o"), brokenReader{}),
		} {
			closed := false
			c := newClient(t, &httpeffect.Options{MaxResponseBytes: 10, Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: status, Header: http.Header{}, Body: closeCheck{body, &closed}}, nil
			})})
			_, _ = c.Do(t.Context(), in, httpeffect.Request{URL: "http://127.0.0.1/"})
			if !closed {
				t.Errorf("%d, %s: the body was not closed", status, name)
			}
		}
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestAnAnswerWithoutBodyAndHeader(t *testing.T) {
	c := newClient(t, &httpeffect.Options{Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200}, nil
	})})
	if resp, err := c.Do(t.Context(), in, httpeffect.Request{URL: "http://127.0.0.1/"}); err != nil || len(resp.Body) != 0 {
		t.Errorf("%+v, %v", resp, err)
	}
}

func TestErrorText(t *testing.T) {
	cause := errors.New("broken pipe")
	tests := []struct {
		err  *httpeffect.Error
		want string
	}{
		{&httpeffect.Error{Method: "POST", URL: "http://h/p", Status: 503}, "POST http://h/p: status 503 Service Unavailable"},
		{&httpeffect.Error{Method: "POST", URL: "http://h/p", Status: 599}, "POST http://h/p: status 599"},
		{&httpeffect.Error{Method: "PUT", URL: "http://h/p", MayBeWritten: true, Err: cause}, "PUT http://h/p: broken pipe (the request may have reached the sink)"},
		{&httpeffect.Error{Method: "PUT", URL: "http://h/p", Err: cause}, "PUT http://h/p: broken pipe (the request never left)"},
		{&httpeffect.Error{Method: "PUT", URL: "http://h/p", Status: 200, MayBeWritten: true, Err: cause}, "PUT http://h/p: status 200 OK: broken pipe"},
	}
	for _, tt := range tests {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("text %q, want %q", got, tt.want)
		}
	}
	if !errors.Is(tests[2].err, cause) || errors.Unwrap(tests[0].err) != nil {
		t.Error("Unwrap does not return the cause")
	}
}

func TestErrorsShowNoSecretOfTheURL(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) })
	secretly := strings.Replace(s.URL, "http://", "http://me:secret@", 1) + "/pay?token=secret#secret"
	_, err := newClient(t, nil).Do(t.Context(), in, httpeffect.Request{URL: secretly})
	if text := err.Error(); strings.Contains(text, "secret") || !strings.Contains(text, s.URL+"/pay") {
		t.Errorf("error %q", text)
	}
	// A transport that wraps an http.Client brings a *url.Error along.
	c := newClient(t, &httpeffect.Options{Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
		return nil, &url.Error{Op: "Post", URL: "http://h/?token=secret", Err: io.ErrUnexpectedEOF}
	})})
	_, err = c.Do(t.Context(), in, httpeffect.Request{URL: secretly})
	if strings.Contains(err.Error(), "secret") || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %q", err)
	}
}
