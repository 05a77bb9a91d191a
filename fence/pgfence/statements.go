package pgfence

import (
	"strings"

	"github.com/jackc/pgx/v5"
)

// statements are the store's, with the schema filled in.
//
// Arrays of keys are hidden from the planner in a sub-select: it then takes them
// for a few elements and looks each of them up. Told their length it prefers to
// read the whole namespace while its statistics are behind, as they are in a table
// that grows.
type statements struct {
	schema, version                       string
	limits, plain                         string
	lock, lockRows, peek, clock, time     string
	rows, rowsFree, visible               string
	insert, update, expiry                string
	get, scan                             string
	due, doomed, remove, unlist, listRest string
	mark, markPartitions, markCommitted   string
	marker, partitions, committed         string
	grade, await                          string
}

func statementsFor(schema string) *statements {
	name := pgx.Identifier{schema}.Sanitize()
	text := strings.ReplaceAll(name, "'", "''")
	fill := func(sql string) string {
		return strings.NewReplacer("$S", name, "$Q", text).Replace(sql)
	}
	return &statements{
		schema: `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1),
			EXISTS (SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = 'version'),
			pg_is_in_recovery()`,
		version: fill(`SELECT version FROM $S.version`),

		// What a transaction of ours may wait for, and no plan from when the table was
		// small. plain takes both back for an effect's statements.
		limits: `SELECT set_config('oncefence.lock_timeout', current_setting('lock_timeout'), true), set_config('lock_timeout', $1, true),
			set_config('idle_in_transaction_session_timeout', $2, true),
			set_config('oncefence.plans', current_setting('plan_cache_mode'), true), set_config('plan_cache_mode', 'force_custom_plan', true)`,
		plain: `SELECT set_config('plan_cache_mode', current_setting('oncefence.plans'), true),
			set_config('lock_timeout', current_setting('oncefence.lock_timeout'), true)`,

		// lock notes which keys it got, one digit each, for lockRows, which needs a
		// snapshot that is later than the locks.
		lock: `SELECT set_config('oncefence.got', (
				SELECT string_agg(CASE WHEN pg_try_advisory_xact_lock(l.key) THEN '1' ELSE '0' END, '' ORDER BY l.n)
				FROM unnest($1::bigint[]) WITH ORDINALITY AS l(key, n)), true)`,
		lockRows: fill(`SELECT digest, data FROM $S.record
			WHERE namespace = $1 AND digest = ANY (ARRAY (
				SELECT k.digest FROM unnest($2::bytea[]) WITH ORDINALITY AS k(digest, n),
					(SELECT current_setting('oncefence.got')::bytea AS got OFFSET 0) AS g
				WHERE get_byte(g.got, (k.n - 1)::int) = 49))
			ORDER BY digest FOR UPDATE`),
		peek: fill(`SELECT digest, data FROM $S.record
			WHERE namespace = $1 AND digest = ANY (ARRAY (
				SELECT k.digest FROM unnest($2::bytea[]) WITH ORDINALITY AS k(digest, n),
					(SELECT current_setting('oncefence.got')::bytea AS got OFFSET 0) AS g
				WHERE strpos(current_setting('oncefence.got'), '0') > 0 AND get_byte(g.got, (k.n - 1)::int) = 48))`),
		clock: fill(`SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, nextval('$Q.token')`),
		time:  `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`,

		rows:     fill(`SELECT digest, data FROM $S.record WHERE namespace = $1 AND digest = ANY (ARRAY (SELECT unnest((SELECT $2::bytea[])))) ORDER BY digest FOR UPDATE`),
		rowsFree: fill(`SELECT digest, data FROM $S.record WHERE namespace = $1 AND digest = ANY (ARRAY (SELECT unnest((SELECT $2::bytea[])))) ORDER BY digest FOR UPDATE SKIP LOCKED`),
		visible:  fill(`SELECT digest FROM $S.record WHERE namespace = $1 AND digest = ANY (ARRAY (SELECT unnest((SELECT $2::bytea[]))))`),

		insert: fill(`INSERT INTO $S.record (namespace, digest, expire, data)
			SELECT $1, v.digest, v.expire, v.data FROM unnest($2::bytea[], $3::bigint[], $4::bytea[]) AS v(digest, expire, data)`),
		update: fill(`UPDATE $S.record AS r SET expire = v.expire, data = v.data
			FROM unnest((SELECT $2::bytea[]), (SELECT $3::bigint[]), (SELECT $4::bytea[])) AS v(digest, expire, data)
			WHERE r.namespace = $1 AND r.digest = v.digest`),
		expiry: fill(`INSERT INTO $S.expiry (namespace, at, digests) VALUES ($1, $2, $3)`),

		get: fill(`SELECT digest, data, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, pg_is_in_recovery()
			FROM $S.record WHERE namespace = $1 AND digest = ANY (ARRAY (SELECT unnest((SELECT $2::bytea[]))))`),
		scan: fill(`SELECT digest, data, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
			FROM $S.record WHERE namespace = $1 AND digest > $2 AND substring(data FROM 1 FOR 4) = ANY ($3::bytea[]) ORDER BY digest LIMIT $4`),

		due: fill(`SELECT ctid::text, digests, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM $S.expiry
			WHERE namespace = $1 AND at <= extract(epoch FROM clock_timestamp()) * 1000000 ORDER BY at LIMIT 16 FOR UPDATE SKIP LOCKED`),
		doomed:   fill(`SELECT digest FROM $S.record WHERE namespace = $1 AND digest = ANY (ARRAY (SELECT unnest((SELECT $2::bytea[])))) AND expire <> 0 AND expire <= $3 ORDER BY digest FOR UPDATE`),
		remove:   fill(`DELETE FROM $S.record WHERE namespace = $1 AND digest = ANY (ARRAY (SELECT unnest((SELECT $2::bytea[])))) AND expire <> 0 AND expire <= $3`),
		unlist:   fill(`DELETE FROM $S.expiry WHERE ctid = $1::text::tid`),
		listRest: fill(`UPDATE $S.expiry SET digests = $2 WHERE ctid = $1::text::tid`),

		mark: fill(`INSERT INTO $S.namespace AS m (id, name, epoch, format, buckets) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, format = excluded.format, buckets = excluded.buckets
			WHERE m.epoch = '\x00000000000000000000000000000000'`),
		markPartitions: fill(`INSERT INTO $S.partitions AS p (namespace, topic, partitions)
			SELECT $1, u.topic, u.n FROM unnest($2::bytea[], $3::integer[]) AS u(topic, n)
			ON CONFLICT (namespace, topic) DO UPDATE SET partitions = greatest(p.partitions, excluded.partitions)`),
		markCommitted: fill(`INSERT INTO $S.committed AS c (namespace, topic, partition, next)
			SELECT $1, u.topic, u.partition, u.next FROM unnest($2::bytea[], $3::integer[], $4::bigint[]) AS u(topic, partition, next)
			ON CONFLICT (namespace, topic, partition) DO UPDATE SET next = greatest(c.next, excluded.next)`),
		marker:     fill(`SELECT name, epoch, format, buckets, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM $S.namespace WHERE id = $1`),
		partitions: fill(`SELECT topic, partitions FROM $S.partitions WHERE namespace = $1`),
		committed:  fill(`SELECT topic, partition, next FROM $S.committed WHERE namespace = $1`),

		grade: fill(`SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
			current_setting('synchronous_standby_names'), pg_is_in_recovery(),
			EXISTS (SELECT FROM pg_class WHERE oid = to_regclass('$Q.record') AND relpersistence <> 'p'),
			(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`),
		await: `SELECT pg_advisory_xact_lock(l.key) FROM (SELECT key FROM unnest($1::bigint[]) AS u(key) ORDER BY key) AS l`,
	}
}
