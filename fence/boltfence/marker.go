package boltfence

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/oncefence/oncefence/fence/driver"
)

// The stored marker, version 1: version 1, epoch 16, format 1, buckets 2 big
// endian; then uvarint count and for each topic its name (uvarint length, bytes)
// and uvarint partitions; then uvarint count and for each partition the topic,
// varint partition and varint offset.
const (
	markerVersion = 1
	markerHead    = 20
)

// Marker implements driver.Store. It writes only what changes the marker.
func (s *Store) Marker(ctx context.Context, namespace string, update driver.Marker) (driver.Marker, error) {
	var answer driver.Marker
	var unreadable error // this call's alone, not the transaction's
	err := s.apply(ctx, namespace, 1, false, func(space *space) error {
		bucket := space.t.tx.Bucket(markersBucket)
		if bucket == nil {
			return errors.New("the bucket of markers is missing")
		}
		before := bucket.Get([]byte("marker/" + namespace))
		if before != nil {
			stored, err := parseMarker(before)
			if err != nil {
				unreadable = fmt.Errorf("marker of namespace %s in fence file %s: %w", namespace, s.path, err)
				return nil
			}
			answer = stored
		}
		answer = answer.Merge(update)
		answer.Now = 0
		after := appendMarker(nil, &answer)
		answer.Now = space.t.now
		if slices.Equal(before, after) {
			return nil
		}
		space.t.changed = true
		return bucket.Put([]byte("marker/"+namespace), after)
	})
	if err = errors.Join(err, unreadable); err != nil {
		return driver.Marker{}, err
	}
	return answer, nil
}

func appendMarker(dst []byte, m *driver.Marker) []byte {
	dst = append(dst, markerVersion)
	dst = append(dst, m.Epoch[:]...)
	dst = append(dst, m.Format)
	dst = binary.BigEndian.AppendUint16(dst, m.Buckets)
	dst = binary.AppendUvarint(dst, uint64(len(m.Partitions)))
	for _, topic := range slices.Sorted(maps.Keys(m.Partitions)) {
		dst = appendText(dst, topic)
		dst = binary.AppendUvarint(dst, uint64(uint32(m.Partitions[topic])))
	}
	places := slices.SortedFunc(maps.Keys(m.Committed), func(a, b driver.TopicPartition) int {
		if order := strings.Compare(a.Topic, b.Topic); order != 0 {
			return order
		}
		return int(a.Partition) - int(b.Partition)
	})
	dst = binary.AppendUvarint(dst, uint64(len(places)))
	for _, place := range places {
		dst = appendText(dst, place.Topic)
		dst = binary.AppendVarint(dst, int64(place.Partition))
		dst = binary.AppendVarint(dst, m.Committed[place])
	}
	return dst
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func parseMarker(data []byte) (m driver.Marker, err error) {
	if len(data) < markerHead || data[0] != markerVersion {
		return m, fmt.Errorf("%w: another version, or cut short", driver.ErrUnreadable)
	}
	copy(m.Epoch[:], data[1:])
	m.Format, m.Buckets = data[17], binary.BigEndian.Uint16(data[18:])
	p := markerParser{data: data[markerHead:]}
	m.Partitions, m.Committed = map[string]int32{}, map[driver.TopicPartition]int64{}
	for n := p.uvarint(); n > 0 && !p.bad; n-- {
		topic := p.text()
		m.Partitions[topic] = int32(uint32(p.uvarint()))
	}
	for n := p.uvarint(); n > 0 && !p.bad; n-- {
		place := driver.TopicPartition{Topic: p.text(), Partition: int32(p.varint())}
		m.Committed[place] = p.varint()
	}
	if p.bad || len(p.data) != 0 {
		return driver.Marker{}, fmt.Errorf("%w: cut short, or bytes left over", driver.ErrUnreadable)
	}
	return m, nil
}

type markerParser struct {
	data []byte
	bad  bool
}

func (p *markerParser) uvarint() uint64 {
	n, size := binary.Uvarint(p.data)
	p.skip(size)
	return n
}

func (p *markerParser) varint() int64 {
	n, size := binary.Varint(p.data)
	p.skip(size)
	return n
}

func (p *markerParser) text() string {
	n := p.uvarint()
	if n > uint64(len(p.data)) {
		p.bad = true
		return ""
	}
	s := string(p.data[:n])
	p.data = p.data[n:]
	return s
}

func (p *markerParser) skip(size int) {
	if size <= 0 {
		p.bad, p.data = true, nil
		return
	}
	p.data = p.data[size:]
}
