package pgfence

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncefence/oncefence/fence/driver"
)

// errInFlight answers a claim that was sent again and may be held by itself.
var errInFlight = errors.New("PostgreSQL: an earlier request of this claim may still be under way: ask again")

// Claim implements driver.Store: two round trips for up to 512 claims. A claim
// that is refused its key's lock is answered by what the last commit left, if
// that is done or a conflict, else Held.
func (s *Store) Claim(ctx context.Context, namespace string, claims []driver.Claim) []driver.Claimed {
	out := make([]driver.Claimed, len(claims))
	if len(claims) == 0 {
		return out
	}
	if err := s.check(ctx, namespace); err != nil {
		return claimsFailed(out, err)
	}
	for start := 0; start < len(claims); start += tokenBlock {
		end := min(start+tokenBlock, len(claims))
		s.claim(ctx, namespace, claims[start:end], out[start:end])
	}
	return out
}

func claimsFailed(out []driver.Claimed, err error) []driver.Claimed {
	for i := range out {
		out[i] = driver.Claimed{Err: err}
	}
	return out
}

func (s *Store) claim(ctx context.Context, namespace string, claims []driver.Claim, out []driver.Claimed) {
	order := sorted(len(claims), func(i int) *driver.Digest { return &claims[i].Key })
	committing := false
	err := again(ctx, func() error {
		return s.links.use(ctx, func(conn *pgx.Conn) (err error) {
			t := s.begin(namespace, keysOf(claims, order))
			b := &pgx.Batch{}
			b.Queue("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
			s.limits(b, lockTime, silentTime)
			got := t.lock(b, claims, order)
			if err := send(ctx, conn, b); err != nil {
				committing = false
				return err
			}
			t.room(len(order))
			for n, i := range order {
				found := t.found[claims[i].Key]
				next, answer := s.decide(t, &claims[i], found, (*got)[n] == '1')
				if next != nil {
					t.put(&claims[i].Key, found.record != nil, next)
				}
				out[i] = answer
			}
			committing, err = t.finish(ctx, conn)
			return err
		})
	})
	if err != nil {
		claimsFailed(out, outcome(ctx, committing, err))
		if committing && !refused(err) {
			s.unanswered.add(claims)
		}
		return
	}
	s.unanswered.remove(claims, out)
}

func keysOf(claims []driver.Claim, order []int) [][]byte {
	keys := make([][]byte, len(order))
	for n, i := range order {
		keys[n] = claims[i].Key[:]
	}
	return keys
}

// lock queues the keys' locks, the rows below those that were got, what is
// visible of the others, and then the clock and a block of tokens. The string
// tells key by key, in order, '1' for a lock that was got.
func (t *transaction) lock(b *pgx.Batch, claims []driver.Claim, order []int) *string {
	locks := make([]int64, len(order))
	for n, i := range order {
		locks[n] = lockKey(t.id, &claims[i].Key)
	}
	var got string
	b.Queue(t.s.sql.lock, locks).QueryRow(func(row pgx.Row) error { return row.Scan(&got) })
	t.scan(b, t.s.sql.lockRows, t.id, t.keys)
	t.scan(b, t.s.sql.peek, t.id, t.keys)
	b.Queue(t.s.sql.clock).QueryRow(func(row pgx.Row) error {
		var first int64
		err := row.Scan(&t.now, &first)
		t.read, t.tokens = time.Now(), uint64(first)
		return err
	})
	return &got
}

// decide answers a claim. Without its key's lock it can only be answered by what
// no other transaction can take back.
func (s *Store) decide(t *transaction, c *driver.Claim, found row, locked bool) (next *driver.Record, answer driver.Claimed) {
	if found.err != nil {
		return nil, driver.Claimed{Err: found.err, Now: t.now}
	}
	if locked {
		return c.Decide(found.record, t.now, t.token)
	}
	next, answer = c.Decide(found.record, t.now, func(prev uint64) uint64 { return prev + 1 })
	switch {
	case next == nil && (answer.Err != nil || answer.Answer.Granted() || answer.Answer == driver.Duplicate || answer.Answer == driver.Conflict):
		return nil, answer
	case s.unanswered.has(c.Nonce):
		return nil, driver.Claimed{Err: errInFlight, Now: t.now}
	}
	held := driver.Claimed{Answer: driver.Held, Now: t.now}
	if r := found.record; r != nil && !r.Expired(t.now) {
		held.Record = *r
		if r.Held(t.now) && r.LeaseEnd != 0 {
			held.Left = time.Duration(r.LeaseEnd-t.now) * time.Microsecond
		}
	}
	return nil, held
}
