package consumertest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
)

// scene is a group in the middle of a rule. Its methods stop the rule by a panic
// with seen when the source does something that no rule allows.
type scene struct {
	ctx     context.Context
	h       Harness
	group   string
	members []*member
	next    map[driver.TopicPartition]int // how many were produced
}

// seen is what a rule saw and did not want.
type seen struct{ err error }

func newScene(ctx context.Context, h Harness) *scene {
	var id [6]byte
	_, _ = rand.Read(id[:])
	return &scene{ctx: ctx, h: h, group: "consumertest-" + hex.EncodeToString(id[:]), next: map[driver.TopicPartition]int{}}
}

func (s *scene) failf(format string, args ...any) { panic(seen{fmt.Errorf(format, args...)}) }

func (s *scene) want(ok bool, format string, args ...any) {
	if !ok {
		s.failf(format, args...)
	}
}

func (s *scene) must(err error, doing string) {
	if err != nil {
		s.failf("%s: %w", doing, err)
	}
}

// end closes what is open and tells what the members saw against the rules that
// always hold.
func (s *scene) end() error {
	var errs []error
	for _, m := range s.members {
		m.stop()
		errs = append(errs, m.broken()...)
	}
	return errors.Join(errs...)
}

// patient bounds what has to happen.
func (s *scene) patient() (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.ctx, s.h.Patience)
}

// within runs a call of a source and says whether it returned in time, for the
// source that does not heed its context.
func (s *scene) within(call func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	timer := time.NewTimer(s.h.Patience * 3 / 2)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// calls runs a call of a source that has to return in time.
func (s *scene) calls(name string, call func()) {
	s.want(s.within(call), "%s does not return, although its context has ended", name)
}

// starts starts a source by hand.
func (s *scene) starts(ctx context.Context, m *member, extra ...driver.Subscription) (err error) {
	s.calls("Start", func() { err = m.source.Start(ctx, extra, m) })
	return err
}

// polls polls once, by hand.
func (s *scene) polls(ctx context.Context, m *member, limit int) (batches []driver.Batch, err error) {
	s.calls("Poll", func() { batches, err = m.source.Poll(ctx, limit) })
	m.take(batches, limit)
	return batches, err
}

// pollsUntil polls by hand, few records at a time, until done.
func (s *scene) pollsUntil(m *member, what string, done func() bool) {
	ctx, cancel := s.patient()
	defer cancel()
	for {
		m.mu.Lock()
		ok := done()
		m.mu.Unlock()
		if ok {
			return
		}
		if _, err := s.polls(ctx, m, 3); err != nil {
			s.failf("%s did not come: %w", what, err)
		}
	}
}

// pass waits.
func (s *scene) pass(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ctx.Done():
		s.failf("the run was ended: %w", s.ctx.Err())
	}
}

func (s *scene) quiet() { s.pass(s.h.Quiet) }

// topic makes a topic.
func (s *scene) topic(partitions int) string {
	name, err := s.h.Topic(s.ctx, partitions)
	s.must(err, "the harness makes a topic")
	return name
}

func of(topic string, partition int32) driver.TopicPartition {
	return driver.TopicPartition{Topic: topic, Partition: partition}
}

// produce writes n records whose values count from 0 by partition.
func (s *scene) produce(tp driver.TopicPartition, n int) {
	records := make([]driver.Record, n)
	for i := range records {
		records[i] = driver.Record{Topic: tp.Topic, Partition: tp.Partition, Value: []byte(strconv.Itoa(s.next[tp]))}
		s.next[tp]++
	}
	s.must(s.h.Produce(s.ctx, records), "the harness produces")
}

// committed returns the group's position.
func (s *scene) committed(tp driver.TopicPartition) (int64, string) {
	offset, metadata, err := s.h.Committed(s.ctx, s.group, tp)
	s.must(err, "the harness reads a committed position")
	return offset, metadata
}

// wantCommitted compares the group's position.
func (s *scene) wantCommitted(when string, tp driver.TopicPartition, offset int64, metadata string) {
	o, m := s.committed(tp)
	s.want(o == offset && m == metadata, "%s: the group's position in %v is %d with metadata %q, want %d with %q", when, tp, o, m, offset, metadata)
}

// commits commits one position and wants it to succeed.
func (s *scene) commits(m *member, tp driver.TopicPartition, offset int64, metadata string) {
	s.must(s.commit(m, tp, offset, metadata), fmt.Sprintf("commit of %v at %d", tp, offset))
}

func (s *scene) commit(m *member, tp driver.TopicPartition, offset int64, metadata string) error {
	ctx, cancel := s.patient()
	defer cancel()
	var errs []error
	offsets := []driver.Offset{{TopicPartition: tp, Offset: offset, LeaderEpoch: m.epoch(tp, offset-1), Metadata: metadata}}
	if !s.within(func() { errs = m.source.Commit(ctx, offsets) }) {
		return errors.New("commit does not return, although its context has ended")
	}
	if len(errs) != 1 {
		return fmt.Errorf("one position got %d answers", len(errs))
	}
	return errs[0]
}

// open makes a source that is closed at the end of the rule at the latest.
func (s *scene) open(topics ...string) *member {
	source, err := s.h.Open(s.ctx, s.group, topics)
	s.must(err, "the harness opens a source")
	m := newMember(s, source)
	s.members = append(s.members, m)
	return m
}

// start makes a member that polls.
func (s *scene) start(topics ...string) *member {
	m := s.open(topics...)
	m.start()
	m.poll(100)
	return m
}

// await waits until the member has seen what makes done true.
func (s *scene) await(m *member, what string, done func() bool) {
	ctx, cancel := s.patient()
	defer cancel()
	for {
		m.mu.Lock()
		ok, changed := done(), m.changed
		m.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			m.mu.Lock()
			state := m.state()
			m.mu.Unlock()
			s.failf("%s did not happen in %v; the member has %s", what, s.h.Patience, state)
		}
	}
}

// holds waits until the member has exactly these partitions.
func (s *scene) holds(m *member, tps ...driver.TopicPartition) {
	s.await(m, fmt.Sprintf("an assignment of %v", tps), func() bool {
		for _, tp := range tps {
			if m.held[tp] == nil {
				return false
			}
		}
		return len(m.held) == len(tps)
	})
}

// gets waits until the member was given the partition's records [from, to), in
// the assignment that it has or had last.
func (s *scene) gets(m *member, tp driver.TopicPartition, from, to int) {
	s.await(m, fmt.Sprintf("delivery of %v, records %d to %d", tp, from, to-1), func() bool {
		a := m.last[tp]
		return a != nil && len(a.records) >= to-from
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.last[tp]
	for i, r := range a.records {
		s.want(string(r.Value) == strconv.Itoa(from+i), "%v: record %d of the assignment (offset %d) has value %.20q, want %d", tp, i, r.Offset, r.Value, from+i)
	}
	s.want(len(a.records) == to-from, "%v: %d records in this assignment, want %d", tp, len(a.records), to-from)
}

// stays watches for a while that the member gets no more of the partition.
func (s *scene) stays(m *member, tp driver.TopicPartition) {
	m.mu.Lock()
	before := len(m.last[tp].records)
	m.mu.Unlock()
	s.quiet()
	m.mu.Lock()
	defer m.mu.Unlock()
	s.want(len(m.last[tp].records) == before, "%v: %d records came meanwhile", tp, len(m.last[tp].records)-before)
}
