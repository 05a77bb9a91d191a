package httpeffect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/oncefence/oncefence/effect"
)

// Request is one request to a sink. Its body is in memory: it must be sendable
// again by a later attempt.
type Request struct {
	// Method is the method. "": POST. TRACE and CONNECT are refused.
	Method string
	// URL is absolute, http or https. User and password in it become basic
	// authentication.
	URL string
	// Header is sent as it is; it is copied and not changed. A header named
	// as Options.KeyHeader, traceparent or tracestate here takes the place of
	// the one that the client would set.
	Header http.Header
	// Body is the body. Empty: none.
	Body []byte
}

// build makes the request in a form that net/http does not send again by
// itself (see the package's documentation).
func (r Request) build(ctx context.Context, in effect.Input, o *Options) (*http.Request, error) {
	method := r.Method
	if method == "" {
		method = http.MethodPost
	}
	if !isToken(method) || method == http.MethodTrace || method == http.MethodConnect {
		return nil, fmt.Errorf("method %q cannot be used for an effect", method)
	}
	u, err := parseURL(r.URL)
	if err != nil {
		return nil, err
	}
	header, err := r.header(in, o)
	if err != nil {
		return nil, err
	}
	if u.User != nil && header.Get("Authorization") == "" {
		password, _ := u.User.Password()
		basic := http.Request{Header: header}
		basic.SetBasicAuth(u.User.Username(), password)
	}
	req := (&http.Request{
		Method: method, URL: u, Host: u.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	switch {
	case len(r.Body) > 0:
		req.Body, req.ContentLength = onceBody{bytes.NewReader(r.Body)}, int64(len(r.Body))
	case method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions:
		// net/http repeats these whenever they have no body at all. It finds
		// out that this one is empty before it writes, so none is sent.
		req.Body = onceBody{bytes.NewReader(nil)}
	default:
		hideKeyHeaders(header)
	}
	return req, nil
}

// onceBody is a body of which net/http knows no way to rewind.
type onceBody struct{ io.Reader }

func (onceBody) Close() error { return nil }

func (r Request) header(in effect.Input, o *Options) (http.Header, error) {
	header := make(http.Header, len(r.Header)+3)
	for name, values := range r.Header {
		if !isToken(name) {
			return nil, fmt.Errorf("header name %q is not valid", name)
		}
		for _, value := range values {
			if !isFieldValue(value) {
				return nil, fmt.Errorf("the value of header %s has bytes that a header cannot hold", name)
			}
			header.Add(name, value)
		}
	}
	if !o.NoKeyHeader && header.Values(o.KeyHeader) == nil {
		if in.EffectID == "" || !isFieldValue(in.EffectID) {
			return nil, fmt.Errorf("the input has no effect id that %s can carry: hand on the input that the effect was called with, or set NoKeyHeader", o.KeyHeader)
		}
		header.Set(o.KeyHeader, in.EffectID)
	}
	// Trace context comes from the record: what cannot be sent is left out.
	if header.Values("Traceparent") == nil && in.TraceParent != "" && isFieldValue(in.TraceParent) {
		header.Set("Traceparent", in.TraceParent)
		if header.Values("Tracestate") == nil && in.TraceState != "" && isFieldValue(in.TraceState) {
			header.Set("Tracestate", in.TraceState)
		}
	}
	return header, nil
}

// hideKeyHeaders renames the headers by which net/http takes a request without
// a body for one that it may repeat. It looks for the canonical name only.
func hideKeyHeaders(header http.Header) {
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		if values, ok := header[name]; ok {
			delete(header, name)
			header[strings.ToLower(name)] = values
		}
	}
}

func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		var e *url.Error
		if errors.As(err, &e) {
			err = e.Err // without the URL, which may hold a password
		}
		return nil, fmt.Errorf("the URL cannot be parsed: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("the URL has the scheme %q: use http or https", u.Scheme)
	}
	if u.Hostname() == "" {
		return nil, errors.New("the URL has no host")
	}
	return u, nil
}

// isToken reports whether s is a token of RFC 9110: a method or header name.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		alnum := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !alnum && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

// isFieldValue reports whether net/http sends s as the value of a header.
func isFieldValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
