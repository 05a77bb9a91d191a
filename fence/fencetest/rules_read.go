package fencetest

import (
	"maps"
	"slices"

	"github.com/oncefence/oncefence/fence/driver"
)

// scan collects what the filter lets through; a key seen twice breaks the rule.
func (s *scene) scan(filter driver.Filter) map[driver.Digest]driver.Record {
	out := map[driver.Digest]driver.Record{}
	err := s.store.Scan(s.ctx, s.space, filter, func(key driver.Digest, r driver.Record) bool {
		if before, twice := out[key]; twice && diff(before, r) == "" {
			s.failf("scan shows the key %x twice", key[:4])
		}
		out[key] = r
		return true
	})
	s.want(err == nil, "scan failed: %w", err)
	return out
}

// readRules: get, scan, namespaces, marker, grade.
var readRules = []Rule{
	{
		Name: "get/order", Says: "get answers in the order of its keys, absent ones too, a key asked twice twice",
		check: func(s *scene) {
			a, b, none := s.hold(driver.New, s.key()), s.hold(driver.New, s.key()), s.key()
			got := s.getAll([]driver.Digest{b.key(), none, a.key(), b.key()})
			s.equal("the first", got[0], b.rec)
			s.want(got[1].State == driver.Absent, "a key without record is %v", got[1].State)
			s.equal("the third", got[2], a.rec)
			s.equal("the fourth", got[3], b.rec)
			s.want(len(s.getAll(nil)) == 0, "get of nothing gave something")
		},
	},
	{
		Name: "scan/filter", Says: "scan shows each whole record that the filter lets through, by state and by doubt (a lease that ended without a verdict counts), and no tombstone",
		check: func(s *scene) {
			named := map[string]holder{}
			put := func(name string, h holder) holder {
				named[name] = h
				return h
			}
			put("held", s.hold(driver.New, s.key()))
			put("held in doubt", s.hold(driver.InDoubt, s.lapse(driver.New, s.key()).key()))
			put("lapsed", s.lapse(driver.New, s.key()))
			put("gave up", s.hold(driver.New, s.key(), s.short)).does(driver.GiveUp)
			put("requeued", s.hold(driver.New, s.key())).does(driver.HandOver)
			put("requeued in doubt", s.hold(driver.New, s.key())).does(driver.HandOver, doubtful)
			put("dead", s.hold(driver.New, s.key())).does(driver.Bury)
			put("dead in doubt", s.hold(driver.New, s.key())).does(driver.Bury, doubtful)
			put("done", s.hold(driver.New, s.key())).does(driver.Seal)
			s.hold(driver.New, s.key()).does(driver.Release)
			s.pass()
			shows := func(filter driver.Filter, want ...string) {
				got := s.scan(filter)
				for _, name := range want {
					h := named[name]
					r, shown := got[h.key()]
					s.want(shown, "filter %v misses the record that is %s", filter, name)
					s.equal("the record that is "+name, r, h.get())
					delete(got, h.key())
				}
				s.want(len(got) == 0, "filter %v shows %d records too many", filter, len(got))
			}
			shows(driver.Filter{}, slices.Collect(maps.Keys(named))...)
			shows(driver.Filter{States: []driver.State{driver.Pending}}, "held", "held in doubt", "lapsed", "gave up")
			shows(driver.Filter{States: []driver.State{driver.Done, driver.Requeued}}, "done", "requeued", "requeued in doubt")
			shows(driver.Filter{InDoubt: true}, "held in doubt", "lapsed", "requeued in doubt", "dead in doubt")
			shows(driver.Filter{InDoubt: true, States: []driver.State{driver.Dead}}, "dead in doubt")
		},
	},
	{
		Name: "scan/stops", Says: "scan stops when yield returns false, without an error; yield may use the store",
		check: func(s *scene) {
			for range 5 {
				s.hold(driver.New, s.key())
			}
			n := 0
			err := s.store.Scan(s.ctx, s.space, driver.Filter{}, func(key driver.Digest, r driver.Record) bool {
				n++
				s.equal("get of the key that scan shows", s.get(key), r)
				return n < 2
			})
			s.want(err == nil, "it failed: %w", err)
			s.want(n == 2, "yield was called %d times, want 2", n)
		},
	},
	{
		Name: "scan/many", Says: "scan shows all of 700 records",
		check: func(s *scene) {
			claims := make([]driver.Claim, 700)
			for i := range claims {
				claims[i] = s.ask(s.key())
			}
			for i, c := range s.claimAll(claims) {
				s.want(c.Err == nil && c.Answer == driver.New, "claim %d: %v, %v", i, c.Answer, c.Err)
			}
			s.want(len(s.scan(driver.Filter{})) == 700, "it shows %d", len(s.scan(driver.Filter{})))
		},
	},
	{
		Name: "namespace/apart", Says: "namespaces do not see each other: the same key is new in each, and get, scan, purge and transitions stay in theirs",
		check: func(s *scene) {
			h := s.hold(driver.New, s.key())
			h.does(driver.Seal, s.brief)
			before, home := h.get(), s.space
			s.space = home + "2"
			other := s.hold(driver.New, h.key())
			s.does(driver.Refused, h.says(driver.Renew, token(other.rec.Token+1)))
			s.want(len(s.scan(driver.Filter{})) == 1, "scan shows %d records, want 1", len(s.scan(driver.Filter{})))
			s.pass()
			s.want(s.purge(10) == 0, "purge removed a record of another namespace")
			s.space = home
			s.want(h.get().State == driver.Absent || diff(h.get(), before) == "", "the record changed from another namespace")
			s.want(s.purge(10) <= 1, "more than one record of this namespace was purged")
		},
	},
	{
		Name: "marker/merge", Says: "the marker keeps the first epoch, format and buckets; partition counts and committed offsets only grow; the answer carries the store's time",
		check: func(s *scene) {
			tp := driver.TopicPartition{Topic: "orders: \x00é", Partition: 7}
			first := driver.Marker{Epoch: [16]byte{1, 0, 255}, Format: driver.FormatVersion, Buckets: 16, Partitions: map[string]int32{"orders": 12}, Committed: map[driver.TopicPartition]int64{tp: 40}}
			second := driver.Marker{
				Epoch: [16]byte{9}, Format: 99, Buckets: 3, Partitions: map[string]int32{"orders": 6, "refunds": 2},
				Committed: map[driver.TopicPartition]int64{tp: 39, {Topic: "orders", Partition: 1}: 0, {Topic: "refunds"}: 1 << 60},
			}
			var want driver.Marker
			for i, update := range []driver.Marker{first, second, {}} {
				want = want.Merge(update)
				got, err := s.store.Marker(s.ctx, s.space, update)
				s.want(err == nil, "call %d failed: %w", i, err)
				s.want(got.Now > 0, "call %d: no store time", i)
				s.want(got.Epoch == want.Epoch && got.Format == want.Format && got.Buckets == want.Buckets, "call %d: epoch %x, format %d, buckets %d", i, got.Epoch, got.Format, got.Buckets)
				s.want(maps.Equal(got.Partitions, want.Partitions), "call %d: partitions %v, want %v", i, got.Partitions, want.Partitions)
				s.want(maps.Equal(got.Committed, want.Committed), "call %d: committed %v, want %v", i, got.Committed, want.Committed)
			}
			s.want(len(s.scan(driver.Filter{})) == 0, "scan shows the marker as a record")
			s.want(first.Partitions["refunds"] == 0 && len(first.Committed) == 1, "the caller's maps were changed")
		},
	},
	{
		Name: "marker/together", Says: "markers written at the same time lose nothing",
		check: func(s *scene) {
			const writers = 20
			together(writers, func(i int) error {
				_, err := s.store.Marker(s.ctx, s.space, driver.Marker{Epoch: [16]byte{byte(i + 1)}, Committed: map[driver.TopicPartition]int64{{Topic: "t", Partition: int32(i)}: int64(i)}})
				return err
			}, s)
			got, err := s.store.Marker(s.ctx, s.space, driver.Marker{})
			s.want(err == nil, "it failed: %w", err)
			s.want(len(got.Committed) == writers, "%d of %d partitions are there", len(got.Committed), writers)
			s.want(got.Epoch != [16]byte{}, "no epoch was kept")
		},
	},
	{
		Name: "grade/told", Says: "the grade is one of the five levels and names the settings that it was read from",
		check: func(s *scene) {
			grade, err := s.store.Grade(s.ctx)
			s.want(err == nil, "it failed: %w", err)
			s.want(grade.Level <= driver.GradeReplicated, "level %d", grade.Level)
			s.want(grade.Detail != "", "no settings are named")
		},
	},
}
