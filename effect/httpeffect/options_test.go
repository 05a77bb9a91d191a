package httpeffect_test

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncefence/oncefence/effect/httpeffect"
)

func TestWrongOptions(t *testing.T) {
	tests := []struct {
		name string
		o    httpeffect.Options
		want string
	}{
		{"negative size", httpeffect.Options{MaxResponseBytes: -1}, "MaxResponseBytes is -1"},
		{"both", httpeffect.Options{KeyHeader: "X-Key", NoKeyHeader: true}, `KeyHeader is "X-Key" and NoKeyHeader is set`},
		{"header name", httpeffect.Options{KeyHeader: "X Key"}, `KeyHeader "X Key" is not a header name`},
		{"status too low", httpeffect.Options{Status: map[int]httpeffect.Meaning{100: httpeffect.Applied}}, "status 100"},
		{"status too high", httpeffect.Options{Status: map[int]httpeffect.Meaning{600: httpeffect.Applied}}, "status 600"},
		{"meaning", httpeffect.Options{Status: map[int]httpeffect.Meaning{503: 9}}, "status 503 has the unknown meaning 9"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := httpeffect.New(&tt.o)
			if err == nil || c != nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("New = %v, %v; want an error with %q", c, err, tt.want)
			}
		})
	}
	if _, err := httpeffect.New(&httpeffect.Options{MaxResponseBytes: math.MaxInt}); err != nil {
		t.Errorf("the largest size: %v", err)
	}
}

func TestTheLargestSizeReadsEverything(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("all of it")) })
	resp, err := newClient(t, &httpeffect.Options{MaxResponseBytes: math.MaxInt}).Do(t.Context(), in, httpeffect.Request{URL: s.URL})
	if err != nil || string(resp.Body) != "all of it" {
		t.Errorf("%q, %v", resp.Body, err)
	}
}

func TestTimeout(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{0: 30 * time.Second, time.Second: time.Second, -1: time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			c, err := httpeffect.New(&httpeffect.Options{Timeout: timeout, Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
				select {
				case <-r.Context().Done():
					return nil, r.Context().Err()
				case <-time.After(time.Hour):
					return &http.Response{StatusCode: 200}, nil
				}
			})})
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			_, err = c.Do(t.Context(), in, httpeffect.Request{URL: "http://127.0.0.1/"})
			if took := time.Since(start); took != want || (err == nil) != (want == time.Hour) {
				t.Errorf("Timeout %v: %v after %v, want it after %v", timeout, err, took, want)
			}
		})
	}
}

func TestCloseIdleConnectionsOfAForeignTransport(t *testing.T) {
	c, err := httpeffect.New(&httpeffect.Options{Transport: transportFunc(nil)})
	if err != nil {
		t.Fatal(err)
	}
	c.CloseIdleConnections() // has none to close, and must not mind
}
