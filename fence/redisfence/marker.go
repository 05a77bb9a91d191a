package redisfence

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/oncefence/oncefence/fence/driver"
)

// Marker implements driver.Store. The number of buckets is the store's own: an
// update's is not looked at. When the marker was made with another number
// nothing is written and the error says which.
func (s *Store) Marker(ctx context.Context, namespace string, update driver.Marker) (driver.Marker, error) {
	if err := s.check(namespace); err != nil {
		return driver.Marker{}, err
	}
	c := &chunk{items: []int{0}, keys: []string{markerKey(namespace)}, mark: newMark()}
	c.args = append(c.args, string(update.Epoch[:]), strconv.Itoa(int(update.Format)), strconv.Itoa(s.buckets))
	for _, topic := range slices.Sorted(maps.Keys(update.Partitions)) {
		c.args = append(c.args, "p:"+topic, strconv.Itoa(int(max(update.Partitions[topic], 0))))
	}
	for tp, offset := range update.Committed {
		c.args = append(c.args, fmt.Sprintf("c:%d:%s", tp.Partition, tp.Topic), strconv.FormatInt(max(offset, 0), 10))
	}
	c = s.call(s.client, markerScript, false).run(ctx, []*chunk{c})[0]
	if c.err != nil {
		return driver.Marker{}, c.err
	}
	m, err := parseMarker(c.reply[1:])
	if err != nil {
		return driver.Marker{}, fmt.Errorf("the marker %s cannot be read: %w", markerKey(namespace), err)
	}
	m.Now = c.now()
	if m.Buckets != 0 && int(m.Buckets) != s.buckets {
		return m, fmt.Errorf("namespace %s was made with %d buckets and this store is set to %d, which would find none of its records: set redisfence.Options.Buckets to %d, or use another namespace", namespace, m.Buckets, s.buckets, m.Buckets)
	}
	return m, nil
}

// parseMarker reads the fields and values of the hash.
func parseMarker(reply []any) (driver.Marker, error) {
	m := driver.Marker{Partitions: map[string]int32{}, Committed: map[driver.TopicPartition]int64{}}
	for ; len(reply) >= 2; reply = reply[2:] {
		field, _ := reply[0].(string)
		value, _ := reply[1].(string)
		if err := markField(&m, field, value); err != nil {
			return m, err
		}
	}
	return m, nil
}

func markField(m *driver.Marker, field, value string) error {
	name, rest, _ := strings.Cut(field, ":")
	switch name {
	case "epoch":
		if len(value) != len(m.Epoch) {
			return fmt.Errorf("field epoch has %d bytes, not %d", len(value), len(m.Epoch))
		}
		copy(m.Epoch[:], value)
		return nil
	case "format", "buckets", "p", "c":
	default:
		return nil // a later release's
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return fmt.Errorf("field %s: %w", field, err)
	}
	switch name {
	case "format":
		m.Format = uint8(n)
	case "buckets":
		m.Buckets = uint16(n)
	case "p":
		m.Partitions[rest] = int32(n)
	case "c":
		number, topic, _ := strings.Cut(rest, ":")
		partition, err := strconv.ParseInt(number, 10, 32)
		if err != nil {
			return fmt.Errorf("field %s: %w", field, err)
		}
		m.Committed[driver.TopicPartition{Topic: topic, Partition: int32(partition)}] = n
	}
	return nil
}
