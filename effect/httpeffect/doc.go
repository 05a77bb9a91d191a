// Package httpeffect is an HTTP client for effects. Its errors say what an
// effect must know: whether the request can have reached the sink, and what the
// sink's status means.
//
//	what happened                                    the error           why
//	2xx, answer read (or over the size limit)        none: applied       the sink says so
//	4xx other than 408 and 429                       effect.Permanent    refused before working
//	429                                              effect.Temporary    refused for now; Retry-After is handed on
//	408, 5xx, 3xx, any other status                  unknown             the sink may have worked; Retry-After is handed on
//	2xx, but the answer broke off                    unknown             so may the work behind it
//	time-out, cancel or broken connection after a
//	byte of the request may have left                unknown             the sink may have worked
//	the same before any byte left: refused, no
//	route, name not resolved, TLS handshake failed,
//	time-out while connecting, context already over  effect.Temporary    nothing left the process
//	request that cannot be built (URL, method,
//	header)                                          effect.Permanent    nothing left, and never will
//
// "Unknown" is decided by the kind of the effect: Idempotent runs again,
// Probed asks, AtMostOnce parks. What a sink documents about a status goes into
// Options.Status: if a provider's 503 means that nothing was booked, say so and
// it is retried under every kind.
//
// # A request leaves once
//
// net/http sends a request again by itself when a kept-alive connection breaks
// before the first byte of an answer, if the request has an Idempotency-Key
// header and no body, or a body that can be rewound. The sink may have worked
// on the first one, which under AtMostOnce would be a second effect. So
// requests are built in a way that net/http never repeats: their body cannot be
// rewound, and without a body the header is not written under the name that
// net/http looks for (on the wire header names have no case). The client itself
// sends a second time only when a reused connection turned out to be dead and
// not a byte of the request had left. Redirects are never followed, whatever
// the method: a 3xx is unknown and names where it points.
//
// HTTP/2 shares a connection among requests, so nobody can prove for it that
// nothing was written. NewTransport, the default, speaks HTTP/1.1 only. Another
// http.RoundTripper is taken as it is; then every failure after it had a
// connection is unknown, and so is every failure of one that does not report to
// net/http/httptrace. One that repeats requests by itself breaks the promise.
package httpeffect
