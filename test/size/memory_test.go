package size

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/oncefence/oncefence/consumer"
	"github.com/oncefence/oncefence/effect"
)

// maxGrowth is how much the heap may grow while one record does not finish.
const maxGrowth = 64 << 20

// One record does not finish while a million follow in its partition and in
// others. Its partition stops at its window, the others go on, and the heap
// stays within its bound.
func TestMemoryBehindOneRecord(t *testing.T) {
	records := 1_000_000
	if raceEnabled { // which makes the loop ten times as slow
		records /= 10
	}
	for _, partitions := range []int{20, 200} {
		t.Run(fmt.Sprint(partitions, " partitions"), func(t *testing.T) { testMemory(t, partitions, records) })
	}
}

func testMemory(t *testing.T, partitions, records int) {
	source := newGenerator(partitions, records+consumer.DefaultPartitionRecords)
	store := &forgetful{}
	const looks = 10
	every := int64(records / looks)
	look, release := make(chan int64, looks), make(chan struct{})
	var gate sync.RWMutex // closed while the heap is looked at
	before := heap()
	l := start(t, source, store, consumer.Options{}, func(ran int64, in *effect.Input) {
		if in.Origin.Partition == 0 && in.Origin.Offset == 0 {
			<-release
			return
		}
		if ran%every == 0 && ran/every <= looks {
			look <- ran
		}
		gate.RLock()
		defer gate.RUnlock()
	})
	var most int64
	for range looks {
		select {
		case ran := <-look:
			gate.Lock()
			grown := heap() - before
			gate.Unlock()
			most = max(most, grown)
			t.Logf("%7d records: the heap has grown by %.1f MiB", ran, float64(grown)/(1<<20))
		case err := <-l.ended:
			t.Fatalf("Run: %v", err)
		}
	}
	if most > maxGrowth {
		t.Errorf("the heap grew by %d MiB, at most %d are allowed", most>>20, maxGrowth>>20)
	}
	if at := source.committed(0); at != 0 {
		t.Errorf("partition 0 is committed at %d, past the record that has not finished", at)
	}
	if n := source.delivered(0); n > consumer.DefaultPartitionRecords+consumer.DefaultBatchSize {
		t.Errorf("%d records of partition 0 were taken in, its window is %d", n, consumer.DefaultPartitionRecords)
	}
	close(release)
	l.end(t)
}

// heap is what is alive, in bytes. What a program allocates while its garbage is
// collected counts as alive, so the second time is the one that tells.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
