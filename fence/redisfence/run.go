package redisfence

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// call is how the chunks of one batch reach the server.
type call struct {
	client   redis.UniversalClient
	script   *script
	replicas int // that must confirm what was written; 0: none
	timeout  time.Duration
}

// run sends the script for every chunk, in one flush to each node, and fills
// in the replies and errors. It answers the chunks with which that happened:
// some may have been split. When ctx ends it returns at once; what was on the
// wire is unknown then.
func (c call) run(ctx context.Context, chunks []*chunk) []*chunk {
	if err := ctx.Err(); err != nil {
		return failed(chunks, fmt.Errorf("not sent: %w", context.Cause(ctx)))
	}
	if ctx.Done() == nil {
		return c.exchange(ctx, chunks)
	}
	// The client itself looks at ctx only between its attempts.
	done := make(chan []*chunk, 1)
	go func() { done <- c.exchange(ctx, chunks) }()
	select {
	case chunks = <-done:
		return chunks
	case <-ctx.Done():
		// The chunks still belong to the goroutine.
		lost := make([]*chunk, len(chunks))
		for i, c := range chunks {
			lost[i] = &chunk{items: c.items, first: c.first, keys: c.keys}
		}
		return failed(lost, fmt.Errorf("unknown whether it was applied: %w", context.Cause(ctx)))
	}
}

func failed(chunks []*chunk, err error) []*chunk {
	for _, c := range chunks {
		c.err = err
	}
	return chunks
}

// exchange runs the script for every chunk and explains what went wrong.
func (c call) exchange(ctx context.Context, chunks []*chunk) []*chunk {
	_, cluster := c.client.(*redis.ClusterClient)
	chunks = c.trade(ctx, chunks)
	for _, k := range chunks {
		if k.err != nil && ctx.Err() != nil { // the client tells that ctx ended, not why
			k.err = fmt.Errorf("%w: %w", context.Cause(ctx), k.err)
		}
		k.err = explain(k.err, cluster)
	}
	return chunks
}

// trade runs the script for every chunk: by its name, by its text where the
// server does not know it, and key by key where a slot is being moved.
func (c call) trade(ctx context.Context, chunks []*chunk) []*chunk {
	c.send(ctx, "evalsha", c.script.sha, chunks)
	var unknown []*chunk
	for _, k := range chunks {
		if redis.HasErrorPrefix(k.err, "NOSCRIPT") {
			unknown = append(unknown, k)
		}
	}
	if len(unknown) > 0 {
		c.send(ctx, "eval", c.script.text, unknown)
	}
	var all, again []*chunk
	for _, k := range chunks {
		// A slot that is being moved to another node serves single keys, from
		// one node or the other.
		if redis.IsTryAgainError(k.err) && len(k.keys) > 1 {
			again = append(again, k.split()...)
		} else {
			all = append(all, k)
		}
	}
	if len(again) == 0 {
		return chunks
	}
	return append(all, c.trade(ctx, again)...)
}

// send runs the script once for each chunk.
func (c call) send(ctx context.Context, verb, body string, chunks []*chunk) {
	cmds := make([]redis.Cmder, len(chunks))
	for i, k := range chunks {
		cmds[i] = redis.NewCmd(ctx, k.command(verb, body)...)
	}
	switch {
	case c.replicas > 0:
		c.confirm(ctx, cmds, chunks)
	case len(cmds) == 1:
		_ = c.client.Process(ctx, cmds[0]) // the command keeps its error
	default:
		pipe := c.client.Pipeline()
		for _, cmd := range cmds {
			_ = pipe.Process(ctx, cmd) // queues
		}
		_, _ = pipe.Exec(ctx) // each command keeps its error
	}
	for i, cmd := range cmds {
		k := chunks[i]
		k.reply, k.err = cmd.(*redis.Cmd).Slice()
		if k.err == nil {
			k.err = k.check()
		}
	}
}

// command is the chunk's script as the client library takes it. The keys and
// arguments are handed over by address, which spares an allocation for each.
func (c *chunk) command(verb, body string) []any {
	args := make([]any, 0, 4+len(c.keys)+len(c.args))
	args = append(args, verb, body, len(c.keys))
	for i := range c.keys {
		args = append(args, &c.keys[i])
	}
	args = append(args, &c.mark)
	for i := range c.args {
		args = append(args, &c.args[i])
	}
	return args
}

// explain says what an error means for the items, and what a person should do
// where the set-up is wrong. It never says that nothing was applied: the client
// may have sent the script before, and lost that answer.
func explain(err error, cluster bool) error {
	var answer redis.Error
	switch {
	case err == nil || errors.Is(err, errForeignReply):
		return err
	case !errors.As(err, &answer):
		return fmt.Errorf("unknown whether it was applied: %w", err)
	case strings.Contains(err.Error(), "Error compiling script") || strings.Contains(err.Error(), "Unexpected engine in script shebang"):
		return fmt.Errorf("this server cannot run the fence's scripts, Redis 7.0 or Valkey 7.2 or later is needed: %w", err)
	case !cluster && (redis.HasErrorPrefix(err, "CROSSSLOT") || redis.HasErrorPrefix(err, "MOVED")):
		return fmt.Errorf("the server is a cluster node: hand in redis.NewClusterClient: %w", err)
	case redis.HasErrorPrefix(err, "READONLY"):
		return fmt.Errorf("connected to a replica, a failover may be under way: %w", err)
	}
	return fmt.Errorf("refused by the server: %w", err)
}
