// Package pgfence keeps a fence in PostgreSQL, version 14 or later, through pgx.
//
// Its tables stand in a schema of their own in the user's database, so that a
// transactional effect (effect.Transactional) writes in the same transaction as
// its fence: claim, effect and seal become visible in one commit, or none does.
// Users hand in their *pgxpool.Pool ([New]), or their *sql.DB over pgx ([NewSQL]).
//
// # Tables
//
//   - record: namespace, digest and packed record of fence/driver, one row a
//     key. expire is when the row may be purged, in microseconds, 0 for never.
//     There is no index but the primary key: a renewal or a seal changes no
//     indexed column.
//   - expiry: one row for the records of a transaction that expire in the same
//     millisecond: when, and their digests one after the other. Purge reads only
//     what is due. A record that is written again gets another entry; the old one
//     then finds it alive and is dropped.
//   - namespace, partitions, committed: the namespaces' markers. Namespaces are
//     numbered by the first 8 bytes of the SHA-256 of their text.
//   - token: the sequence of fencing tokens, drawn in blocks. A token is above the
//     key's last one even if the sequence was set back.
//   - version: the schema's version.
//
// # Locks
//
// A claim takes a transaction-level advisory lock on its key (the first 8 bytes
// of the digest, mixed with the namespace) without waiting: a row that is not
// committed yet can neither be locked nor seen. A claim that is refused the lock
// is held by another one. Then it locks the row, if there is one. Everything else
// locks rows only. Keys are locked in their order, so batches do not wait in
// circles. A batch of 512 claims needs as many entries in the server's lock
// table, which holds max_locks_per_transaction (64) times max_connections (100):
// raise the first where many processes claim at once.
package pgfence
