package consumer

import (
	"container/heap"
	"fmt"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/effect"
	"github.com/oncefence/oncefence/fence"
	fencedriver "github.com/oncefence/oncefence/fence/driver"
	"github.com/oncefence/oncefence/requeue"
)

// stage is where an item stands in the loop. Exactly one part of the loop holds
// an item at a time; the stage says which.
type stage uint8

const (
	stageNew       stage = iota
	stageWaitDue         // a copy before its due time (timer)
	stageWaitLane        // behind another record of its lane
	stageWaitKey         // behind another record with its key in this process
	stageClaimQ          // in claimQ
	stageClaiming        // in a claim request
	stageHeld            // another claim holds the key (timer)
	stageSuspect         // in suspects: waits until it can run alone
	stageWaitAlone       // released, will run alone, behind another record of its lane
	stageReady           // holds its claim, waits for its turn in the lane
	stageRunQ            // in the work queue
	stageRunning         // in a worker
	stageWaitProbe       // before the probe may be asked (timer)
	stageApplyQ          // in applyQ
	stageApplying        // in a transition request
	stageWaitApply       // its transition failed alone (timer)
	stageProduceQ        // in produceQ
	stageProducing       // in a produce request
	stageWaitRetry       // a retry in place, or a store or broker error (timer)
	stageSettled         // over: lasting evidence
	stageDropped         // over without evidence: its partition went away
)

// item is one delivery on its way through the loop.
type item struct {
	rec         *driver.Record
	part        *partition
	index       int // number of its entry in part's window, see partition.base
	key         fence.Key
	fingerprint fencedriver.Fingerprint
	effectID    string
	place       requeue.Place
	copy        *requeue.Copy // nil for an original
	headers     []driver.Header
	origin      requeue.Origin
	attempt     uint32 // the delivery's
	step        uint32
	due         time.Time     // of a copy
	hop         time.Duration // left to wait in another delay topic
	missingID   bool
	foreign     bool
	poison      string
	poisonErr   error

	stage     stage
	laneKey   uint64
	inLane    bool
	hasKey    bool
	laneNext  *item
	keyNext   *item
	heapIndex int
	wake      time.Time

	request   fence.Request
	shared    *shared // of a Transactional effect
	hold      *fence.Hold
	found     *fencedriver.Record // the record that answered, when it is needed
	heldSince time.Time
	tries     int  // of what is being tried again
	held      bool // the last answer was held
	heldTries int  // how often it was asked for since
	single    bool // failed while others in the same request did not

	doubt      bool  // the effect may have been applied
	probe      bool  // the worker asks the probe instead of running the effect
	ownProbe   bool  // about the own attempt
	attemptEnd int64 // store time at which that ended
	probes     int
	alone      bool               // runs while nothing else does
	readyAt    time.Time          // when it got its turn
	steps      []fencedriver.Step // of the journal, once one was kept in this attempt
	outcome    effect.Outcome
	finding    effect.Finding
	took       time.Duration
	pending    bool // claimed and has not run
	called     bool // the effect was called, this time
	ran        bool // the effect was called under this claim
	unused     bool // the attempt that began in place was not run
	class      effect.Class
	delay      time.Duration // given by a temporary error
	orphaned   bool          // an effect that did not return; another item goes on

	op       fencedriver.Op // the transition that is wanted or under way
	verdict  fence.Verdict
	wait     time.Duration // of the retry
	outgoing driver.Record // the copy or dead letter
	settles  bool          // the produced record itself is the evidence
	decision string        // reported when settled
	reason   string        // of the dead letter
	cause    error
	conflict fencedriver.Fingerprint // the first payload's, in a conflict
}

func sourceID(it *item) string {
	return fmt.Sprintf("%s:%d:%d", it.rec.Topic, it.rec.Partition, it.rec.Offset)
}

// overhead is what a delivery costs beside its record's bytes: the item, the
// record, its places in window, lane and queues, its claim. test/size measures
// it.
const overhead = 1536

// bytes estimates what a delivery keeps in memory while it is in flight.
func (it *item) bytes() int {
	n := len(it.rec.Key) + len(it.rec.Value) + overhead
	for i := range it.rec.Headers {
		n += len(it.rec.Headers[i].Key) + len(it.rec.Headers[i].Value) + 40
	}
	return n
}

// timers is a heap of items by wake time: one timer serves them all.
type timers []*item

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].wake.Before(t[j].wake) }
func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].heapIndex, t[j].heapIndex = i, j
}

func (t *timers) Push(x any) {
	it := x.(*item) // only items are pushed
	it.heapIndex = len(*t)
	*t = append(*t, it)
}

func (t *timers) Pop() any {
	old := *t
	it := old[len(old)-1]
	old[len(old)-1] = nil
	*t = old[:len(old)-1]
	it.heapIndex = -1
	return it
}

func (t *timers) add(it *item, at time.Time) {
	it.wake = at
	heap.Push(t, it)
}

func (t *timers) remove(it *item) {
	if it.heapIndex >= 0 && it.heapIndex < len(*t) && (*t)[it.heapIndex] == it {
		heap.Remove(t, it.heapIndex)
	}
}
