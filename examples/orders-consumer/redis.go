package main

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// quietRedis keeps the client's own log lines off the terminal: what matters of
// them comes back as errors.
func quietRedis() { redis.SetLogger(noLog{}) }

type noLog struct{}

func (noLog) Printf(context.Context, string, ...any) {}

// removeNamespace deletes all keys of a namespace of a Redis fence.
func removeNamespace(ctx context.Context, url, namespace string) error {
	opts, err := redis.ParseURL(url)
	if err != nil {
		return err
	}
	client := redis.NewClient(opts)
	defer client.Close()
	keys := client.Scan(ctx, 0, "idemp:{"+escapeGlob(namespace)+":*", 1000).Iterator()
	var batch []string
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := client.Unlink(ctx, batch...).Err()
		batch = batch[:0]
		return err
	}
	for keys.Next(ctx) {
		if batch = append(batch, keys.Val()); len(batch) == 1000 {
			if err := flush(); err != nil {
				return fmt.Errorf("remove namespace %s: %w", namespace, err)
			}
		}
	}
	if err := keys.Err(); err != nil {
		return fmt.Errorf("remove namespace %s: %w", namespace, err)
	}
	return flush()
}

// escapeGlob escapes what a SCAN pattern gives a meaning.
func escapeGlob(s string) string {
	var out []byte
	for i := range len(s) {
		switch s[i] {
		case '*', '?', '[', ']', '\\', '^':
			out = append(out, '\\')
		}
		out = append(out, s[i])
	}
	return string(out)
}
