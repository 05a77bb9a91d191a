package redisfence

import "context"

// Purge implements driver.Store. Redis removes expired records by itself: the
// answer is 0.
func (s *Store) Purge(ctx context.Context, namespace string, _ int) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, context.Cause(ctx)
	}
	return 0, s.check(namespace)
}
