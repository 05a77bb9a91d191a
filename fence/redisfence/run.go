package redisfence

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// run sends one script for every chunk, in one flush to each node, and fills
// in the replies and errors. It answers the chunks with which that happened:
// some may have been split. When ctx ends it returns at once; what was on the
// wire is unknown then.
func (s *Store) run(ctx context.Context, client redis.UniversalClient, sc *script, chunks []*chunk) []*chunk {
	if err := ctx.Err(); err != nil {
		return failed(chunks, fmt.Errorf("not sent: %w", context.Cause(ctx)))
	}
	if ctx.Done() == nil {
		return exchange(ctx, client, sc, chunks)
	}
	// The client itself looks at ctx only between its attempts.
	done := make(chan []*chunk, 1)
	go func() { done <- exchange(ctx, client, sc, chunks) }()
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
func exchange(ctx context.Context, client redis.UniversalClient, sc *script, chunks []*chunk) []*chunk {
	_, cluster := client.(*redis.ClusterClient)
	chunks = trade(ctx, client, sc, chunks)
	for _, c := range chunks {
		if c.err != nil && ctx.Err() != nil { // the client tells that ctx ended, not why
			c.err = fmt.Errorf("%w: %w", context.Cause(ctx), c.err)
		}
		c.err = explain(c.err, cluster)
	}
	return chunks
}

// trade runs the script for every chunk: by its name, by its text where the
// server does not know it, and key by key where a slot is being moved.
func trade(ctx context.Context, client redis.UniversalClient, sc *script, chunks []*chunk) []*chunk {
	send(ctx, client, "evalsha", sc.sha, chunks)
	var unknown []*chunk
	for _, c := range chunks {
		if redis.HasErrorPrefix(c.err, "NOSCRIPT") {
			unknown = append(unknown, c)
		}
	}
	if len(unknown) > 0 {
		send(ctx, client, "eval", sc.text, unknown)
	}
	moving := 0
	for _, c := range chunks {
		if redis.IsTryAgainError(c.err) && len(c.keys) > 1 {
			moving++
		}
	}
	if moving > 0 {
		return sendSplit(ctx, client, sc, chunks)
	}
	return chunks
}

// sendSplit repeats the chunks whose slot is being moved to another node, each
// key on its own: a single key is served by one node or the other.
func sendSplit(ctx context.Context, client redis.UniversalClient, sc *script, chunks []*chunk) []*chunk {
	var all, again []*chunk
	for _, c := range chunks {
		if redis.IsTryAgainError(c.err) && len(c.keys) > 1 {
			again = append(again, c.split()...)
			continue
		}
		all = append(all, c)
	}
	return append(all, trade(ctx, client, sc, again)...)
}

// send runs the script once for each chunk.
func send(ctx context.Context, client redis.UniversalClient, verb, body string, chunks []*chunk) {
	cmds := make([]redis.Cmder, len(chunks))
	for i, c := range chunks {
		args := make([]any, 0, 4+len(c.keys)+len(c.args))
		args = append(args, verb, body, len(c.keys))
		for i := range c.keys {
			args = append(args, &c.keys[i])
		}
		args = append(args, &c.mark)
		for i := range c.args {
			args = append(args, &c.args[i])
		}
		cmds[i] = redis.NewCmd(ctx, args...)
	}
	if len(cmds) == 1 {
		_ = client.Process(ctx, cmds[0]) // the command keeps its error
	} else {
		pipe := client.Pipeline()
		for _, cmd := range cmds {
			_ = pipe.Process(ctx, cmd) // queues
		}
		_, _ = pipe.Exec(ctx) // each command keeps its error
	}
	for i, cmd := range cmds {
		c := chunks[i]
		c.reply, c.err = cmd.(*redis.Cmd).Slice()
		if c.err == nil {
			c.err = c.check()
		}
	}
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
