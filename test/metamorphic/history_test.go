package metamorphic

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/fence/fencetest"
)

// histories draws histories that rapid can make smaller: fewer moves, fewer
// items, lower numbers, flags off.
func histories(most int) *rapid.Generator[fencetest.History] {
	return rapid.Custom(func(t *rapid.T) fencetest.History {
		// A slice is short on average; a slice of slices is long enough.
		chapters := rapid.SliceOfN(rapid.SliceOfN(rapid.Custom(drawMove), 1, 8), 1, most/8)
		return slices.Concat(chapters.Draw(t, "chapters")...)
	})
}

func drawMove(t *rapid.T) fencetest.Move {
	m := fencetest.Move{Verb: rapid.SampledFrom([]fencetest.Verb{
		fencetest.MoveClaim, fencetest.MoveApply, fencetest.MoveClaim, fencetest.MoveApply, fencetest.MoveApply, fencetest.MoveScan, fencetest.MovePurge, fencetest.MoveMarker,
	}).Draw(t, "verb")}
	switch m.Verb {
	case fencetest.MoveClaim:
		m.Items = rapid.SliceOfNDistinct(rapid.Custom(drawClaim), 1, 2, keyOf).Draw(t, "claims")
	case fencetest.MoveApply:
		m.Items = rapid.SliceOfNDistinct(rapid.Custom(drawTransition), 1, 2, keyOf).Draw(t, "transitions")
	case fencetest.MoveScan:
		m.Filter.InDoubt = rapid.Bool().Draw(t, "in doubt")
		m.Filter.States = rapid.SliceOfN(rapid.SampledFrom([]driver.State{driver.Pending, driver.Requeued, driver.Done, driver.Dead}), 0, 2).Draw(t, "states")
	case fencetest.MoveMarker:
		m.Marker = driver.Marker{
			Epoch: [16]byte{rapid.ByteRange(1, 3).Draw(t, "epoch")}, Format: driver.FormatVersion,
			Partitions: map[string]int32{"orders": rapid.Int32Range(0, 9).Draw(t, "partitions")},
			Committed:  map[driver.TopicPartition]int64{{Topic: "orders", Partition: rapid.Int32Range(0, 2).Draw(t, "partition")}: rapid.Int64Range(0, 99).Draw(t, "offset")},
		}
	case fencetest.MovePurge:
	}
	return m
}

func keyOf(i fencetest.Item) int { return i.Key }

// seldom is true one time in n, and shrinks to false.
func seldom(t *rapid.T, n int, name string) bool {
	return rapid.IntRange(0, n-1).Draw(t, name) == n-1
}

func drawKey(t *rapid.T) fencetest.Item {
	return fencetest.Item{Key: rapid.IntRange(0, fencetest.HistoryKeys-1).Draw(t, "key"), Ends: seldom(t, 3, "ends")}
}

func drawClaim(t *rapid.T) fencetest.Item {
	i := drawKey(t)
	i.Attempt, i.Step = rapid.Uint32Range(1, 5).Draw(t, "attempt"), rapid.Uint32Range(0, 2).Draw(t, "step")
	i.Kind = rapid.SampledFrom([]driver.Kind{driver.KindIdempotent, driver.KindProbed, driver.KindAtMostOnce, driver.KindTransactional}).Draw(t, "kind")
	i.Payload = rapid.SampledFrom([]byte{1, 1, 1, 1, 1, 1, 0, 2}).Draw(t, "payload")
	i.InPlace, i.Unsure = seldom(t, 4, "in place"), seldom(t, 4, "unsure")
	i.Again, i.TooLate, i.Patient = seldom(t, 8, "again"), seldom(t, 16, "too late"), seldom(t, 16, "patient")
	return i
}

func drawTransition(t *rapid.T) fencetest.Item {
	i := drawKey(t)
	i.Op = rapid.SampledFrom([]driver.Op{
		driver.Seal, driver.Release, driver.HandOver, driver.Bury, driver.Retry, driver.GiveUp, driver.Begin, driver.Keep, driver.Renew, driver.Resolve,
	}).Draw(t, "op")
	i.Back = rapid.SampledFrom([]int{0, 0, 0, 0, 0, 1, 1, 2, -1}).Draw(t, "back")
	i.Applied, i.Steps = rapid.Bool().Draw(t, "applied"), rapid.IntRange(1, 3).Draw(t, "steps")
	return i
}
