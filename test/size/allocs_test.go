package size

import (
	"runtime"
	"testing"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/effect"
)

// maxAllocs is how many allocations the loop may make for one record.
const maxAllocs = 10

// The loop, the fence and what the source and store of this test need (a few
// for each batch) together.
func TestAllocsPerRecord(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates for itself: the test without it counts")
	}
	const warm, records = 20_000, 200_000
	source := newGenerator(6, warm+records)
	var from, to runtime.MemStats
	done := make(chan struct{})
	l := start(t, source, &forgetful{}, consumer.Options{}, func(ran int64, _ *effect.Input) {
		switch ran {
		case warm:
			runtime.ReadMemStats(&from)
		case warm + records:
			runtime.ReadMemStats(&to)
			close(done)
		}
	})
	l.wait(t, done)
	l.end(t)
	per := float64(to.Mallocs-from.Mallocs) / records
	bytes := float64(to.TotalAlloc-from.TotalAlloc) / records
	t.Logf("%.2f allocations and %.0f bytes a record", per, bytes)
	if per > maxAllocs {
		t.Errorf("%.2f allocations a record, at most %d are allowed", per, maxAllocs)
	}
}
