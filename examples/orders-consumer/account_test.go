package main

import (
	"testing"

	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/driver"
)

func TestTally(t *testing.T) {
	value, other := []byte(`{"order_id":"A1"}`), []byte(`{"order_id":"A1","amount_cents":5}`)
	first, second := coordinates{1, 10}, coordinates{2, 20}
	record := func(state driver.State, holder coordinates) driver.Record {
		return driver.Record{State: state, Fingerprint: fence.FingerprintOf(value), Origin: driver.Origin{Partition: holder.partition, Offset: holder.offset}}
	}
	applied, duplicate, conflict, dead, lost := tally{Applied: 1}, tally{Duplicates: 1}, tally{Conflicts: 1}, tally{DeadLetters: 1}, tally{Lost: 1}
	for _, c := range []struct {
		name   string
		id     string
		value  []byte
		record driver.Record
		letter string // reason of the dead letter of the line at first
		want   tally
	}{
		{"sealed", "A1", value, record(driver.Done, first), "", applied},
		{"sealed, after an old dead letter that was replayed", "A1", value, record(driver.Done, first), "permanent", applied},
		{"another line was sealed", "A1", value, record(driver.Done, second), "", duplicate},
		{"another line is a dead letter", "A1", value, record(driver.Dead, second), "", duplicate},
		{"another line was lost", "A1", value, record(driver.Pending, second), "", duplicate},
		{"other content, dead letter", "A1", other, record(driver.Done, second), "conflict", conflict},
		{"other content, no dead letter", "A1", other, record(driver.Done, second), "", lost},
		{"other content, a dead letter that says something else", "A1", other, record(driver.Done, second), "permanent", lost},
		{"dead, with its letter", "A1", value, record(driver.Dead, first), "in_doubt", dead},
		{"dead, without a letter", "A1", value, record(driver.Dead, first), "", lost},
		{"still pending", "A1", value, record(driver.Pending, first), "", lost},
		{"still pending, although there is a letter", "A1", value, record(driver.Pending, first), "permanent", lost},
		{"requeued, and nobody goes on", "A1", value, record(driver.Requeued, first), "", lost},
		{"no record", "A1", value, driver.Record{}, "", lost},
		{"no record, but a letter", "A1", value, driver.Record{}, "missing id", dead},
		{"does not decode", "", []byte("oops"), driver.Record{}, "undecodable", dead},
		{"does not decode, and no letter", "", []byte("oops"), driver.Record{}, "", lost},
		{"same offset in another partition holds the key", "A1", value, record(driver.Done, coordinates{2, 10}), "", duplicate},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got tally
			got.add(line{value: c.value, orderID: c.id, partition: 1, offset: 10}, first, &c.record, c.letter)
			if got != c.want {
				t.Errorf("counted as %+v, want %+v", got, c.want)
			}
			if got.sum() != 1 {
				t.Errorf("one line counts %d times", got.sum())
			}
		})
	}
}
