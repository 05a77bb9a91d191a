package pgfence

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/oncefence/oncefence/fence/driver"
)

// Marker implements driver.Store: one round trip. The merge is the database's,
// and says the same as driver.Marker.Merge.
func (s *Store) Marker(ctx context.Context, namespace string, update driver.Marker) (driver.Marker, error) {
	if err := s.check(ctx, namespace); err != nil {
		return driver.Marker{}, err
	}
	var m driver.Marker
	err := again(ctx, func() error {
		return s.links.use(ctx, func(conn *pgx.Conn) error {
			m = driver.Marker{Partitions: map[string]int32{}, Committed: map[driver.TopicPartition]int64{}}
			id := namespaceID(namespace)
			var name string
			b := &pgx.Batch{}
			b.Queue("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
			b.Queue(s.sql.mark, id, namespace, update.Epoch[:], int16(update.Format), int32(update.Buckets))
			queuePartitions(b, s.sql.markPartitions, id, update.Partitions)
			queueCommitted(b, s.sql.markCommitted, id, update.Committed)
			b.Queue(s.sql.marker, id).QueryRow(func(row pgx.Row) error {
				var epoch []byte
				var format int16
				var buckets int32
				err := row.Scan(&name, &epoch, &format, &buckets, &m.Now)
				copy(m.Epoch[:], epoch)
				m.Format, m.Buckets = uint8(format), uint16(buckets)
				return err
			})
			b.Queue(s.sql.partitions, id).Query(scanPartitions(&m))
			b.Queue(s.sql.committed, id).Query(scanCommitted(&m))
			b.Queue("COMMIT")
			if err := send(ctx, conn, b); err != nil {
				return err
			}
			if name != namespace {
				return fmt.Errorf("namespaces %q and %q have the same number: rename one of them", name, namespace)
			}
			return nil
		})
	})
	if err != nil {
		return driver.Marker{}, describe(ctx, "marker of namespace "+namespace+" in PostgreSQL", err)
	}
	return m, nil
}

func queuePartitions(b *pgx.Batch, sql string, id int64, counts map[string]int32) {
	if len(counts) == 0 {
		return
	}
	var topics [][]byte
	var numbers []int32
	for _, topic := range slices.Sorted(maps.Keys(counts)) {
		topics, numbers = append(topics, []byte(topic)), append(numbers, counts[topic])
	}
	b.Queue(sql, id, topics, numbers)
}

func queueCommitted(b *pgx.Batch, sql string, id int64, offsets map[driver.TopicPartition]int64) {
	if len(offsets) == 0 {
		return
	}
	var topics [][]byte
	var partitions []int32
	var next []int64
	places := slices.SortedFunc(maps.Keys(offsets), func(a, b driver.TopicPartition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	for _, place := range places {
		topics, partitions, next = append(topics, []byte(place.Topic)), append(partitions, place.Partition), append(next, offsets[place])
	}
	b.Queue(sql, id, topics, partitions, next)
}

func scanPartitions(m *driver.Marker) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var topic []byte
		var n int32
		for rows.Next() {
			if err := rows.Scan(&topic, &n); err != nil {
				return err
			}
			m.Partitions[string(topic)] = n
		}
		return rows.Err()
	}
}

func scanCommitted(m *driver.Marker) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var topic []byte
		var place driver.TopicPartition
		var next int64
		for rows.Next() {
			if err := rows.Scan(&topic, &place.Partition, &next); err != nil {
				return err
			}
			place.Topic = string(topic)
			m.Committed[place] = next
		}
		return rows.Err()
	}
}
