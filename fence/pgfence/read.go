package pgfence

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/oncefence/oncefence/fence/driver"
)

// scanStep is how many rows a scan reads at a time.
const scanStep = 256

// Get implements driver.Store. One record that cannot be read fails the call.
func (s *Store) Get(ctx context.Context, namespace string, keys []driver.Digest) ([]driver.Record, error) {
	if err := s.check(ctx, namespace); err != nil {
		return nil, err
	}
	out := make([]driver.Record, len(keys))
	if len(keys) == 0 {
		return out, nil
	}
	asked := make([][]byte, len(keys))
	for i := range keys {
		asked[i] = keys[i][:]
	}
	found := make(map[driver.Digest]*driver.Record, len(keys))
	err := s.links.use(ctx, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, s.sql.get, namespaceID(namespace), asked)
		if err != nil {
			return err
		}
		defer rows.Close()
		var digest, data []byte
		var now int64
		var replica bool
		for rows.Next() {
			if err := rows.Scan(&digest, &data, &now, &replica); err != nil {
				return err
			}
			r := parse(digest, data)
			switch {
			case replica:
				return errReplica
			case r.err != nil:
				return r.err
			case !r.record.Expired(now):
				found[driver.Digest(digest)] = r.record
			}
		}
		return rows.Err()
	})
	if err != nil {
		return nil, describe(ctx, fmt.Sprintf("read %d keys from PostgreSQL", len(keys)), err)
	}
	for i := range keys {
		if r := found[keys[i]]; r != nil {
			out[i] = *r
		}
	}
	return out, nil
}

// Scan implements driver.Store. It goes through the keys in order and reads in
// steps, so yield may take its time and may call the store. Records that cannot
// be read are passed over; the first of them is the error at the end.
func (s *Store) Scan(ctx context.Context, namespace string, filter driver.Filter, yield func(driver.Digest, driver.Record) bool) error {
	if err := s.check(ctx, namespace); err != nil {
		return err
	}
	type item struct {
		key    driver.Digest
		record driver.Record
	}
	after := []byte{}
	var unreadable error
	items := make([]item, 0, scanStep)
	for more := true; more; {
		items, more = items[:0], false
		err := s.links.use(ctx, func(conn *pgx.Conn) error {
			rows, err := conn.Query(ctx, s.sql.scan, namespaceID(namespace), after, prefixes(filter), scanStep)
			if err != nil {
				return err
			}
			defer rows.Close()
			n := 0
			var data []byte
			var now int64
			for rows.Next() {
				if err := rows.Scan(&after, &data, &now); err != nil {
					return err
				}
				n++
				r := parse(after, data)
				switch {
				case r.err != nil && unreadable == nil:
					unreadable = r.err
				case r.err == nil && len(after) == len(driver.Digest{}) && filter.Match(r.record, now):
					items = append(items, item{driver.Digest(after), *r.record})
				}
			}
			more = n == scanStep
			return rows.Err()
		})
		if err != nil {
			return describe(ctx, "scan records in PostgreSQL", err)
		}
		for i := range items {
			if !yield(items[i].key, items[i].record) {
				return nil
			}
		}
	}
	return unreadable
}

// prefixes are the first four bytes of the packed records that a filter may let
// through, so that the others do not travel.
func prefixes(filter driver.Filter) [][]byte {
	states := filter.States
	if len(states) == 0 {
		states = []driver.State{driver.Pending, driver.Requeued, driver.Done, driver.Dead}
	}
	var out [][]byte
	for _, state := range states {
		switch {
		case state == driver.Absent, state == driver.Done && filter.InDoubt:
		case state == driver.Done:
			out = append(out, []byte("done"))
		default:
			out = append(out, []byte(state.String()[:4]))
		}
	}
	return out
}
