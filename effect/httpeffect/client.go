package httpeffect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/oncefence/oncefence/effect"
)

// Client sends requests for effects. It is safe for use by many goroutines and
// keeps connections open between requests: make one for a sink and share it.
type Client struct {
	o     Options
	known bool
}

// Response is what a sink answered.
type Response struct {
	// Status is the status, 0 if there was no answer.
	Status int
	Header http.Header
	// Body is the body, at most Options.MaxResponseBytes of it.
	Body []byte
	// Truncated says that the body was longer.
	Truncated bool
}

// maxDeadConns bounds how many kept connections Do finds dead before it gives
// up. Each is one that had served before and carried nothing of the request.
const maxDeadConns = 10

// New makes a client. nil options are the defaults. Wrong ones are refused with
// an error that names each.
func New(o *Options) (*Client, error) {
	checked, err := o.check()
	if err != nil {
		return nil, err
	}
	_, known := checked.Transport.(*counting)
	return &Client{o: checked, known: known}, nil
}

// CloseIdleConnections closes the connections that no request is using.
func (c *Client) CloseIdleConnections() {
	if t, ok := c.o.Transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// Do sends r for the effect of in and waits for the whole answer. The effect id
// and the trace context of in go into the headers.
//
// A nil error says that the sink applied it. Else the error is classified as
// the table in the package's documentation says, wraps an *Error (but for a
// request that cannot be built), and can be returned by the effect as it is; the Response is filled in as far as there
// was one. Do never follows a redirect and never sends twice what may have
// reached the sink. The body of the answer is closed in every case.
func (c *Client) Do(ctx context.Context, in effect.Input, r Request) (Response, error) {
	if c.o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.o.Timeout)
		defer cancel()
	}
	for dead := 0; ; dead++ {
		t := &tracker{known: c.known}
		req, err := r.build(t.context(ctx), in, &c.o)
		if err != nil {
			return Response{}, effect.Permanent(fmt.Errorf("the HTTP request cannot be built: %w", err))
		}
		if err := ctx.Err(); err != nil {
			return Response{}, effect.Temporary(failure(req, 0, false, err))
		}
		resp, err := c.o.Transport.RoundTrip(req)
		if err == nil && resp == nil {
			err = errors.New("the transport answered with neither a response nor an error")
		}
		if err == nil {
			return c.read(req, resp)
		}
		proven, reused := t.unwritten()
		switch {
		case !proven:
			return Response{}, failure(req, 0, true, err)
		case reused && dead < maxDeadConns && ctx.Err() == nil:
			continue // the kept connection was dead and has carried nothing
		}
		return Response{}, effect.Temporary(failure(req, 0, false, err))
	}
}

// read takes in the answer and says what it means.
func (c *Client) read(req *http.Request, resp *http.Response) (Response, error) {
	out := Response{Status: resp.StatusCode, Header: resp.Header}
	var broken error
	if resp.Body != nil {
		defer resp.Body.Close() //nolint:errcheck // the answer was read
		out.Body, broken = io.ReadAll(io.LimitReader(resp.Body, int64(c.o.MaxResponseBytes)+1))
		if len(out.Body) > c.o.MaxResponseBytes {
			out.Body, out.Truncated = out.Body[:c.o.MaxResponseBytes], true
		}
	}
	meaning, declared := c.o.Status[out.Status]
	if !declared {
		meaning = MeaningOf(out.Status)
	}
	wait := retryAfter(resp.Header, time.Now(), c.o.MaxRetryAfter)
	switch meaning {
	case Applied:
		if broken != nil && !out.Truncated {
			return out, failure(req, out.Status, true, fmt.Errorf("the answer broke off: %w", broken))
		}
		return out, nil
	case RefusedForNow:
		return out, effect.TemporaryAfter(failure(req, out.Status, true, nil), wait)
	case RefusedForGood:
		return out, effect.Permanent(failure(req, out.Status, true, nil))
	case Unknown:
	}
	return out, effect.UnknownAfter(failure(req, out.Status, true, redirect(resp)), wait)
}

// redirect says where a 3xx points and what to do about it, nil for others.
func redirect(resp *http.Response) error {
	if resp.StatusCode < 300 || resp.StatusCode > 399 {
		return nil
	}
	to := "nowhere"
	if u, err := resp.Location(); err == nil {
		to = "to " + bare(u)
	}
	return fmt.Errorf("it points %s and is not followed: use the final URL, or say in Options.Status what %d means", to, resp.StatusCode)
}

func failure(req *http.Request, status int, mayBeWritten bool, err error) *Error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // without its URL, which may hold more than is logged
	}
	return &Error{Method: req.Method, URL: bare(req.URL), Status: status, MayBeWritten: mayBeWritten, Err: err}
}
