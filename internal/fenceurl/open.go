// Package fenceurl opens fences by URL, for programs that take one on the
// command line.
package fenceurl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/oncefence/oncefence/fence"
)

// Lasting lists the URLs of fences that outlive a process, Known all that Open
// understands.
const (
	Lasting = "bolt:PATH, redis://[USER:PASSWORD@]HOST:PORT[/DB], rediss://... (TLS), postgres://[USER:PASSWORD@]HOST:PORT/DATABASE"
	Known   = "mem:, " + Lasting
)

// Options of OpenWith. nil and the zero value mean the defaults.
type Options struct {
	// Fence is handed to the fence; nil means its defaults.
	Fence *fence.Options
	// MustExist refuses a store that would be new: mem:, which no other process
	// has, a bolt file that is not there, and a PostgreSQL without the fence's
	// schema. Otherwise the file or schema is made.
	MustExist bool
}

// Open is OpenWith the defaults.
func Open(ctx context.Context, raw string) (*fence.Fence, error) { return OpenWith(ctx, raw, nil) }

// OpenWith opens the fence at a URL. A server must answer before ctx ends, a
// bolt file must not be open in another process. Closing the fence closes all
// that was opened for it. Errors name the URL without its password.
func OpenWith(ctx context.Context, raw string, opts *Options) (*fence.Fence, error) {
	if opts == nil {
		opts = &Options{}
	}
	f, err := open(ctx, raw, opts)
	if err != nil {
		return nil, fmt.Errorf("open fence %s: %w", Redact(raw), err)
	}
	return f, nil
}

func open(ctx context.Context, raw string, opts *Options) (*fence.Fence, error) {
	scheme, rest, found := strings.Cut(raw, ":")
	switch {
	case !found:
		return nil, errors.New("this is no URL: use " + Known)
	case scheme == "mem" && rest != "":
		return nil, errors.New("mem: takes nothing after the colon")
	case scheme == "mem":
		return openMem(opts)
	case scheme == "bolt":
		return openBolt(rest, opts)
	case scheme == "redis" || scheme == "rediss":
		return openRedis(ctx, raw, opts)
	case scheme == "postgres" || scheme == "postgresql":
		return openPostgres(ctx, raw, opts)
	}
	return nil, fmt.Errorf("there is no %s fence: use %s", scheme, Known)
}
