package redisfence

import (
	"context"
	"fmt"

	"github.com/oncefence/oncefence/fence/driver"
)

// Get implements driver.Store.
func (s *Store) Get(ctx context.Context, namespace string, keys []driver.Digest) ([]driver.Record, error) {
	if err := s.check(namespace); err != nil {
		return nil, err
	}
	out := make([]driver.Record, len(keys))
	err := s.read(ctx, namespace, keys, func(i int, now int64, r *driver.Record, err error) error {
		if err != nil {
			return fmt.Errorf("key %x: %w", keys[i], err)
		}
		if r != nil && !r.Expired(now) {
			out[i] = *r
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// read calls visit with the record of each key, nil if there is none, and the
// store's clock.
func (s *Store) read(ctx context.Context, namespace string, keys []driver.Digest, visit func(i int, now int64, r *driver.Record, err error) error) error {
	digest := func(i int) *driver.Digest { return &keys[i] }
	chunks := s.cut(len(keys), digest)
	for _, c := range chunks {
		s.fill(c, namespace, digest, nil)
	}
	for _, c := range s.call(s.client, getScript, false).run(ctx, chunks) {
		if c.err != nil {
			return c.err
		}
		if len(c.reply) != 1+len(c.keys) {
			return errReply
		}
		for i, value := range c.reply[1:] {
			text, _ := value.(string)
			r, err := parseFound([]byte(text))
			if err := visit(c.item(i), c.now(), r, err); err != nil {
				return err
			}
		}
	}
	return nil
}
