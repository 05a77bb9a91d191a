package pgfence

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncefence/oncefence/fence/driver"
)

// recordSize is about what a packed record takes.
const recordSize = 256

// transaction is one batch on its way through one database transaction: what it
// found, and what it is going to write.
type transaction struct {
	s      *Store
	id     int64 // of the namespace
	keys   [][]byte
	now    int64
	read   time.Time // when now was read, locally
	tokens uint64    // the next of the block
	found  map[driver.Digest]row

	added, changed rows
	expiring       []expiring
	pack           []byte
}

// row is a stored record, nil for none, or why it cannot be read.
type row struct {
	record *driver.Record
	err    error
}

// rows are the columns of what is written.
type rows struct {
	digests [][]byte
	expire  []int64
	data    [][]byte
}

// expiring gathers the digests of one row of the table expiry.
type expiring struct {
	at   int64
	keys []byte
}

// begin makes a transaction over keys, which are in order.
func (s *Store) begin(namespace string, keys [][]byte) *transaction {
	return &transaction{s: s, id: namespaceID(namespace), keys: keys, found: make(map[driver.Digest]row, len(keys))}
}

// limits queues the settings of a transaction that waits for locks at most for
// wait and whose client may be silent for silent.
func (s *Store) limits(b *pgx.Batch, wait, silent time.Duration) {
	b.Queue(s.sql.limits, millis(wait), millis(silent))
}

func millis(d time.Duration) string { return strconv.FormatInt(max(d.Milliseconds(), 1), 10) }

// scan queues reading rows into found.
func (t *transaction) scan(b *pgx.Batch, sql string, args ...any) {
	b.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		var digest, data []byte
		for rows.Next() {
			if err := rows.Scan(&digest, &data); err != nil {
				return err
			}
			if len(digest) != len(driver.Digest{}) {
				return fmt.Errorf("%w: a key of %d bytes in %s.record", driver.ErrUnreadable, len(digest), t.s.schema)
			}
			t.found[driver.Digest(digest)] = parse(digest, data)
		}
		return rows.Err()
	})
}

func parse(digest, data []byte) row {
	r, err := driver.ParseRecord(data)
	if err != nil {
		return row{err: fmt.Errorf("key %x: %w", digest, err)}
	}
	return row{record: &r}
}

// token makes a fencing token above prev.
func (t *transaction) token(prev uint64) uint64 {
	token := max(t.tokens, prev+1)
	t.tokens++
	return token
}

// later is the store's clock now, by this machine's since it was read.
func (t *transaction) later() int64 {
	now := time.Now()
	return t.now + max(now.Sub(t.read), now.Round(0).Sub(t.read.Round(0))).Microseconds()
}

// room makes room for n records that are put.
func (t *transaction) room(n int) {
	t.pack = make([]byte, 0, n*recordSize)
	t.added = rows{digests: make([][]byte, 0, n), expire: make([]int64, 0, n), data: make([][]byte, 0, n)}
}

// put notes next as the record of key. exists says whether it has a row.
func (t *transaction) put(key *driver.Digest, exists bool, next *driver.Record) {
	to := &t.added
	if exists {
		to = &t.changed
	}
	start := len(t.pack)
	t.pack = driver.AppendRecord(t.pack, next)
	to.digests = append(to.digests, key[:])
	to.expire = append(to.expire, purgeable(next))
	to.data = append(to.data, t.pack[start:len(t.pack):len(t.pack)])
	t.expires(key, next)
}

// purgeable is when r may be purged, 0 if never.
func purgeable(r *driver.Record) int64 {
	if r.Expire == 0 || !r.Expired(r.Expire) { // pending, or doubt that stays
		return 0
	}
	return r.Expire
}

func (t *transaction) expires(key *driver.Digest, r *driver.Record) {
	at := purgeable(r)
	if at == 0 {
		return
	}
	at = (at + 999) / 1000 * 1000
	for i := range t.expiring {
		if t.expiring[i].at == at {
			t.expiring[i].keys = append(t.expiring[i].keys, key[:]...)
			return
		}
	}
	t.expiring = append(t.expiring, expiring{at: at, keys: append(make([]byte, 0, len(t.keys)*len(key)), key[:]...)})
}

// writes reports whether there is anything to write.
func (t *transaction) writes() bool { return len(t.added.digests)+len(t.changed.digests) > 0 }

// write queues what was put. A row that came to be meanwhile is a unique
// violation: nothing is written and the batch begins again.
func (t *transaction) write(b *pgx.Batch) {
	if r := &t.added; len(r.digests) > 0 {
		b.Queue(t.s.sql.insert, t.id, r.digests, r.expire, r.data)
	}
	if r := &t.changed; len(r.digests) > 0 {
		b.Queue(t.s.sql.update, t.id, r.digests, r.expire, r.data)
	}
	for _, e := range t.expiring {
		b.Queue(t.s.sql.expiry, t.id, e.at, e.keys)
	}
}

// send runs a pipeline: one round trip.
func send(ctx context.Context, conn *pgx.Conn, b *pgx.Batch) error {
	return conn.SendBatch(ctx, b).Close()
}

// finish writes and commits, or ends a transaction that has nothing to write.
// committing tells whether an error leaves the outcome open.
func (t *transaction) finish(ctx context.Context, conn *pgx.Conn) (committing bool, err error) {
	b := &pgx.Batch{}
	if !t.writes() {
		b.Queue("ROLLBACK")
		_ = send(ctx, conn, b) // the answers stand; a connection that fails is closed
		return false, nil
	}
	t.write(b)
	b.Queue("COMMIT")
	return true, send(ctx, conn, b)
}
