package account

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncefence/oncefence/test/sweep/ledger"
	"github.com/oncefence/oncefence/test/sweep/member"
)

// Line is one record of the source topic.
type Line struct {
	Order     string // "" for one that cannot be identified
	Key       []byte
	Value     []byte
	Partition int32
	Offset    int64
}

// Source makes lines from a seed.
type Source struct {
	random *rand.Rand
	prefix string
	orders int
	sent   []Line // first lines of their order, for duplicates
}

// NewSource returns a source whose order ids begin with prefix.
func NewSource(seed uint64, prefix string) *Source {
	return &Source{random: rand.New(rand.NewPCG(seed, 0x6f6e6365)), prefix: prefix} //nolint:gosec // replayed by its seed
}

// Order makes a line for a new order.
func (s *Source) Order(o member.Order) Line {
	s.orders++
	o.ID = fmt.Sprintf("%s-%d", s.prefix, s.orders)
	value, err := json.Marshal(o)
	if err != nil {
		panic(err) // strings and numbers
	}
	l := Line{Order: o.ID, Key: []byte(fmt.Sprintf("customer-%d", s.random.IntN(16))), Value: value}
	s.sent = append(s.sent, l)
	return l
}

// again returns an earlier line once more.
func (s *Source) again() Line { return s.sent[s.random.IntN(len(s.sent))] }

// mix is how many of 100 lines are of which sort; the rest is booked at once.
var mix = []struct {
	share int
	make  func(*Source) Line
}{
	{10, (*Source).again},
	{2, func(s *Source) Line { // the key of an earlier line, another payload
		l := s.again()
		l.Value = append([]byte(`{"n":1,`), l.Value[1:]...)
		return l
	}},
	{2, func(*Source) Line { return Line{Key: []byte("customer-0"), Value: []byte("no order at all")} }},
	{1, func(*Source) Line { return Line{Value: []byte(`{"id":""}`)} }},
	{8, func(s *Source) Line { return s.Order(member.Order{Do: []string{ledger.Refuse, ledger.Book}}) }},
	{3, func(s *Source) Line { return s.Order(member.Order{Do: []string{ledger.Refuse}}) }},
	{6, func(s *Source) Line { return s.Order(member.Order{Do: []string{ledger.Drop, ledger.Book}}) }},
	{4, func(s *Source) Line { return s.Order(member.Order{Do: []string{ledger.Lose, ledger.Book}}) }},
	{2, func(s *Source) Line { return s.Order(member.Order{Do: []string{ledger.Drop, ledger.Never}}) }},
	{2, func(s *Source) Line { return s.Order(member.Order{Do: []string{ledger.Late, ledger.Book}}) }},
	{3, func(s *Source) Line { return s.Order(member.Order{Do: []string{ledger.Slow}}) }},
	{4, func(s *Source) Line { return s.Order(member.Order{Do: []string{ledger.Never}}) }},
}

// Lines makes n lines: new orders, duplicates, conflicts, poison, temporary and
// permanent errors and unknown outcomes. The first five are one order each that
// is booked, refused once, refused for good, and booked without an answer, and a
// duplicate, so that every path is taken.
func (s *Source) Lines(n int) []Line {
	lines := []Line{
		s.Order(member.Order{}),
		s.Order(member.Order{Do: []string{ledger.Refuse, ledger.Book}}),
		s.Order(member.Order{Do: []string{ledger.Never}}),
		s.Order(member.Order{Do: []string{ledger.Drop, ledger.Book}}),
		s.again(),
	}
	for len(lines) < n {
		lines = append(lines, s.draw())
	}
	s.random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	return lines
}

func (s *Source) draw() Line {
	at := s.random.IntN(100)
	for _, m := range mix {
		if at -= m.share; at < 0 {
			return m.make(s)
		}
	}
	return s.Order(member.Order{})
}

// Send produces the lines and fills in their coordinates.
func (b *Broker) Send(ctx context.Context, lines []Line) error { return b.SendBy(ctx, b.Client, lines) }

// SendBy is Send by another client, such as one in a transaction.
func (b *Broker) SendBy(ctx context.Context, client *kgo.Client, lines []Line) error {
	records := make([]*kgo.Record, len(lines))
	for i := range lines {
		records[i] = &kgo.Record{Topic: b.Topic, Key: lines[i].Key, Value: lines[i].Value}
	}
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("send lines: %w", err)
	}
	for i, r := range records {
		lines[i].Partition, lines[i].Offset = r.Partition, r.Offset
	}
	return nil
}
