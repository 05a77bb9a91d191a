package httpeffect_test

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/effect/httpeffect"
)

// The table of requirement A5: 2xx is not retried, 400-403, 405-428, 430-499
// and 404 are dead letters, 408, 429 and 5xx are retried, where "retried" for
// 408 and 5xx is up to the kind of effect.
func TestStatusTable(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.URL.Path[1:])
		w.WriteHeader(code)
	})
	c := newClient(t, nil)
	for code := 200; code <= 599; code++ {
		want := effect.ClassUnknown
		switch {
		case code < 300:
			want = effect.ClassApplied
		case code == 429:
			want = effect.ClassTemporary
		case code >= 400 && code < 500 && code != 408:
			want = effect.ClassPermanent
		}
		resp, err := c.Do(t.Context(), in, httpeffect.Request{URL: s.URL + "/" + strconv.Itoa(code)})
		if classOf(err) != want || resp.Status != code {
			t.Errorf("status %d (got %d): %v, want %v", code, resp.Status, err, want)
		}
		var e *httpeffect.Error
		if want != effect.ClassApplied && (!errors.As(err, &e) || e.Status != code || !e.MayBeWritten) {
			t.Errorf("status %d: error %v has no *Error with it", code, err)
		}
	}
}

func TestMeaningOf(t *testing.T) {
	for code, want := range map[int]httpeffect.Meaning{
		0: httpeffect.Unknown, 101: httpeffect.Unknown, 199: httpeffect.Unknown,
		200: httpeffect.Applied, 299: httpeffect.Applied,
		300: httpeffect.Unknown, 304: httpeffect.Unknown, 399: httpeffect.Unknown,
		400: httpeffect.RefusedForGood, 404: httpeffect.RefusedForGood, 407: httpeffect.RefusedForGood,
		408: httpeffect.Unknown, 409: httpeffect.RefusedForGood, 428: httpeffect.RefusedForGood,
		429: httpeffect.RefusedForNow, 430: httpeffect.RefusedForGood, 499: httpeffect.RefusedForGood,
		500: httpeffect.Unknown, 503: httpeffect.Unknown, 599: httpeffect.Unknown, 600: httpeffect.Unknown, 999: httpeffect.Unknown,
	} {
		if got := httpeffect.MeaningOf(code); got != want {
			t.Errorf("MeaningOf(%d) = %v, want %v", code, got, want)
		}
	}
}

func TestMeaningString(t *testing.T) {
	for m, want := range map[httpeffect.Meaning]string{
		httpeffect.Unknown: "Unknown", httpeffect.Applied: "Applied",
		httpeffect.RefusedForNow: "RefusedForNow", httpeffect.RefusedForGood: "RefusedForGood",
		httpeffect.Meaning(77): "Unknown",
	} {
		if got := m.String(); got != want {
			t.Errorf("Meaning(%d) = %q, want %q", m, got, want)
		}
	}
}

func TestDeclaredMeanings(t *testing.T) {
	declared := map[int]httpeffect.Meaning{
		503: httpeffect.RefusedForNow,
		409: httpeffect.Applied,
		202: httpeffect.Unknown,
		303: httpeffect.Applied,
		429: httpeffect.RefusedForGood,
	}
	want := map[int]effect.Class{
		503: effect.ClassTemporary,
		409: effect.ClassApplied,
		202: effect.ClassUnknown,
		303: effect.ClassApplied,
		429: effect.ClassPermanent,
		500: effect.ClassUnknown, // not declared
	}
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.URL.Path[1:])
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(code)
	})
	c := newClient(t, &httpeffect.Options{Status: declared})
	declared[500] = httpeffect.Applied // the client has its own copy
	for code, class := range want {
		_, err := c.Do(t.Context(), in, httpeffect.Request{URL: s.URL + "/" + strconv.Itoa(code)})
		got, delay := effect.Classify(err)
		if got != class {
			t.Errorf("status %d: %v, want %v", code, err, class)
		}
		wantDelay := 7 * time.Second
		if class == effect.ClassApplied || class == effect.ClassPermanent {
			wantDelay = 0
		}
		if delay != wantDelay {
			t.Errorf("status %d: delay %v, want %v", code, delay, wantDelay)
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE"} {
		for _, code := range []int{301, 302, 303, 307, 308} {
			followed := false
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/" {
					followed = true
				}
				w.Header().Set("Location", "/elsewhere?token=secret")
				w.WriteHeader(code)
			})
			resp, err := newClient(t, nil).Do(t.Context(), in, httpeffect.Request{Method: method, URL: s.URL + "/"})
			if followed {
				t.Errorf("%s %d: the redirect was followed", method, code)
			}
			if classOf(err) != effect.ClassUnknown || resp.Status != code {
				t.Errorf("%s %d: %v, want unknown", method, code, err)
			}
			if text := err.Error(); !strings.Contains(text, "/elsewhere and is not followed") || strings.Contains(text, "secret") {
				t.Errorf("%s %d: error %q, want where it points, without the query", method, code, text)
			}
		}
	}
}

func TestRedirectToNowhere(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNotModified) })
	_, err := newClient(t, nil).Do(t.Context(), in, httpeffect.Request{URL: s.URL})
	if classOf(err) != effect.ClassUnknown || !strings.Contains(err.Error(), "points nowhere") {
		t.Errorf("error %v, want unknown", err)
	}
}
