package consumertest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/consumer/memsource"
)

// broken is a source with one thing wrong. What is nil is right.
type broken struct {
	driver.Source
	start  func(ctx context.Context, extra []driver.Subscription, h driver.Handler) error
	info   func(i *driver.Info)
	poll   func(ctx context.Context, limit int) ([]driver.Batch, error)
	batch  func(b *driver.Batch)
	record func(r *driver.Record)
	commit func(ctx context.Context, offsets []driver.Offset) []error
	pause  func(tps []driver.TopicPartition)
	close  func(ctx context.Context) error
	relay  relay
}

// relay is a handler between the source and the loop, with one thing wrong.
type relay struct {
	driver.Handler
	assigned func(h driver.Handler, as []driver.Assignment)
	revoked  func(h driver.Handler, ctx context.Context, tps []driver.TopicPartition)
	lost     func(h driver.Handler, tps []driver.TopicPartition)
}

func (r *relay) Assigned(as []driver.Assignment) {
	if r.assigned != nil {
		r.assigned(r.Handler, as)
		return
	}
	r.Handler.Assigned(as)
}

func (r *relay) Revoked(ctx context.Context, tps []driver.TopicPartition) {
	if r.revoked != nil {
		r.revoked(r.Handler, ctx, tps)
		return
	}
	r.Handler.Revoked(ctx, tps)
}

func (r *relay) Lost(tps []driver.TopicPartition) {
	if r.lost != nil {
		r.lost(r.Handler, tps)
		return
	}
	r.Handler.Lost(tps)
}

func (b *broken) Info() driver.Info {
	i := b.Source.Info()
	if b.info != nil {
		b.info(&i)
	}
	return i
}

func (b *broken) Start(ctx context.Context, extra []driver.Subscription, h driver.Handler) error {
	if b.start != nil {
		return b.start(ctx, extra, h)
	}
	b.relay.Handler = h
	return b.Source.Start(ctx, extra, &b.relay)
}

func (b *broken) Poll(ctx context.Context, limit int) ([]driver.Batch, error) {
	if b.poll != nil {
		return b.poll(ctx, limit)
	}
	batches, err := b.Source.Poll(ctx, limit)
	for i := range batches {
		batches[i].Records = slices.Clone(batches[i].Records)
		if b.record != nil {
			for j := range batches[i].Records {
				b.record(&batches[i].Records[j])
			}
		}
		if b.batch != nil {
			b.batch(&batches[i])
		}
	}
	return batches, err
}

func (b *broken) Commit(ctx context.Context, offsets []driver.Offset) []error {
	if b.commit != nil {
		return b.commit(ctx, offsets)
	}
	return b.Source.Commit(ctx, offsets)
}

func (b *broken) Pause(tps []driver.TopicPartition) {
	if b.pause != nil {
		b.pause(tps)
		return
	}
	b.Source.Pause(tps)
}

func (b *broken) Close(ctx context.Context) error {
	if b.close != nil {
		return b.close(ctx)
	}
	return b.Source.Close(ctx)
}

// mutant is something wrong, and a rule that has to notice.
type mutant struct {
	wrong string
	rule  string
	spoil func(b *broken)
}

var mutants = []mutant{
	{"loses the last record of a batch", "delivery/all", func(b *broken) {
		b.batch = func(b *driver.Batch) {
			if n := len(b.Records); n > 1 {
				b.Records = b.Records[:n-1]
			}
		}
	}},
	{"gives a record twice", "delivery/all", func(b *broken) {
		b.batch = func(b *driver.Batch) {
			if len(b.Records) > 0 {
				b.Records = append(b.Records[:1:1], b.Records...)
			}
		}
	}},
	{"swaps records", "delivery/all", func(b *broken) {
		b.batch = func(b *driver.Batch) { slices.Reverse(b.Records) }
	}},
	{"gives more than was asked for", "delivery/limit", func(b *broken) {
		b.poll = func(ctx context.Context, limit int) ([]driver.Batch, error) { return b.Source.Poll(ctx, 3*limit) }
	}},
	{"makes nil keys empty", "delivery/nil-and-empty", func(b *broken) {
		b.record = func(r *driver.Record) { r.Key = append([]byte{}, r.Key...) }
	}},
	{"makes empty values nil", "delivery/nil-and-empty", func(b *broken) {
		b.record = func(r *driver.Record) { r.Value = append([]byte(nil), r.Value...) }
	}},
	{"turns headers round", "delivery/headers", func(b *broken) {
		b.record = func(r *driver.Record) { r.Headers = slices.Clone(r.Headers); slices.Reverse(r.Headers) }
	}},
	{"keeps one header of a name", "delivery/headers", func(b *broken) {
		b.record = func(r *driver.Record) {
			r.Headers = slices.Clone(r.Headers)
			slices.SortStableFunc(r.Headers, func(a, c driver.Header) int { return 0 })
			r.Headers = slices.CompactFunc(r.Headers, func(a, c driver.Header) bool { return a.Key != "" && c.Key == "b" })
		}
	}},
	{"makes nil header values empty", "delivery/headers", func(b *broken) {
		b.record = func(r *driver.Record) {
			r.Headers = slices.Clone(r.Headers)
			for i := range r.Headers {
				r.Headers[i].Value = append([]byte{}, r.Headers[i].Value...)
			}
		}
	}},
	{"cuts big values", "delivery/big", func(b *broken) {
		b.record = func(r *driver.Record) { r.Value = r.Value[:min(len(r.Value), 1<<19)] }
	}},
	{"tells the time of delivery", "delivery/timestamp", func(b *broken) {
		b.record = func(r *driver.Record) { r.Timestamp = time.Now() }
	}},
	{"calls every timestamp the broker's", "delivery/timestamp", func(b *broken) {
		b.record = func(r *driver.Record) { r.AppendTime = true }
	}},
	{"tells another topic id than the assignment's", "delivery/all", func(b *broken) {
		b.record = func(r *driver.Record) { r.TopicID[3]++ }
	}},
	{"tells a next fetch below the records", "delivery/all", func(b *broken) {
		b.batch = func(b *driver.Batch) {
			if len(b.Records) > 0 {
				b.NextFetch = b.Records[0].Offset
			}
		}
	}},
	{"tells a high watermark below the records", "delivery/all", func(b *broken) {
		b.batch = func(b *driver.Batch) { b.HighWatermark = 0 }
	}},
	{"gives records of another assignment", "delivery/all", func(b *broken) {
		b.batch = func(b *driver.Batch) { b.Generation++ }
	}},
	{"assigns too late", "position/assigned-first", func(b *broken) {
		b.relay.assigned = func(h driver.Handler, as []driver.Assignment) { go h.Assigned(as) }
	}},
	{"tells a commit that is none", "position/first", func(b *broken) {
		b.relay.assigned = func(h driver.Handler, as []driver.Assignment) {
			for i := range as {
				as[i].Committed = max(as[i].Committed, 0)
			}
			h.Assigned(as)
		}
	}},
	{"tells a wrong number of partitions", "position/partitions", func(b *broken) {
		b.relay.assigned = func(h driver.Handler, as []driver.Assignment) {
			for i := range as {
				as[i].Partitions++
			}
			h.Assigned(as)
		}
	}},
	{"forgets the metadata of an assignment", "position/resume", func(b *broken) {
		b.relay.assigned = func(h driver.Handler, as []driver.Assignment) {
			for i := range as {
				as[i].Metadata = ""
			}
			h.Assigned(as)
		}
	}},
	{"numbers all assignments alike", "lost/told", func(b *broken) {
		b.relay.assigned = func(h driver.Handler, as []driver.Assignment) {
			for i := range as {
				as[i].Generation = 1
			}
			h.Assigned(as)
		}
		b.batch = func(b *driver.Batch) { b.Generation = 1 }
	}},
	{"commits by itself", "commit/as-asked", func(b *broken) {
		b.batch = func(batch *driver.Batch) {
			b.Source.Commit(context.Background(), []driver.Offset{{TopicPartition: batch.TopicPartition, Offset: batch.NextFetch}})
		}
	}},
	{"drops metadata", "commit/as-asked", func(b *broken) {
		b.commit = func(ctx context.Context, offsets []driver.Offset) []error {
			offsets = slices.Clone(offsets)
			for i := range offsets {
				offsets[i].Metadata = ""
			}
			return b.Source.Commit(ctx, offsets)
		}
	}},
	{"commits one more than asked", "position/resume", func(b *broken) {
		b.commit = func(ctx context.Context, offsets []driver.Offset) []error {
			offsets = slices.Clone(offsets)
			for i := range offsets {
				offsets[i].Offset++
			}
			return b.Source.Commit(ctx, offsets)
		}
	}},
	{"does not commit", "position/resume", func(b *broken) {
		b.commit = func(_ context.Context, offsets []driver.Offset) []error { return make([]error, len(offsets)) }
	}},
	{"is silent about partitions that are not owned", "commit/not-owned", func(b *broken) {
		b.commit = func(ctx context.Context, offsets []driver.Offset) []error {
			errs := b.Source.Commit(ctx, offsets)
			for i := range errs {
				if errors.Is(errs[i], driver.ErrNotOwned) {
					errs[i] = nil
				}
			}
			return errs
		}
	}},
	{"answers commits out of place", "commit/not-owned", func(b *broken) {
		b.commit = func(ctx context.Context, offsets []driver.Offset) []error {
			errs := b.Source.Commit(ctx, offsets)
			slices.SortStableFunc(errs, func(a, b error) int {
				if (a == nil) == (b == nil) {
					return 0
				}
				if a != nil {
					return -1
				}
				return 1
			})
			return errs
		}
	}},
	{"refuses a position that was committed before", "commit/repeated", func(b *broken) {
		done := map[int64]bool{}
		b.commit = func(ctx context.Context, offsets []driver.Offset) []error {
			errs := b.Source.Commit(ctx, offsets)
			for i, o := range offsets {
				if done[o.Offset] {
					errs[i] = errors.New("committed before")
				}
				done[o.Offset] = true
			}
			return errs
		}
	}},
	{"does not pause", "pause/stops", func(b *broken) {
		b.pause = func([]driver.TopicPartition) {}
	}},
	{"loses what it has for a paused partition", "pause/stops", func(b *broken) {
		var paused sync.Map
		b.pause = func(tps []driver.TopicPartition) {
			for _, tp := range tps {
				paused.Store(tp, true)
			}
		}
		b.batch = func(b *driver.Batch) {
			if _, ok := paused.Load(b.TopicPartition); ok {
				b.Records = nil
			}
		}
	}},
	{"pauses for longer than the assignment", "pause/ends", stickyPause},
	{"pauses for longer than a lost assignment", "lost/pauses", stickyPause},
	{"remembers pauses of what it does not have", "pause/not-owned", stickyPause},
	{"does not heed the context of a poll", "poll/context", func(b *broken) {
		b.poll = func(_ context.Context, limit int) ([]driver.Batch, error) {
			return b.Source.Poll(context.Background(), limit)
		}
	}},
	{"says nothing after close", "poll/closed", func(b *broken) {
		b.poll = func(ctx context.Context, limit int) ([]driver.Batch, error) {
			batches, err := b.Source.Poll(ctx, limit)
			if errors.Is(err, driver.ErrClosed) {
				err = errors.New("closed")
			}
			return batches, err
		}
	}},
	{"calls Lost where it should ask", "group/revoke-first", func(b *broken) {
		b.relay.revoked = func(h driver.Handler, _ context.Context, tps []driver.TopicPartition) { h.Lost(tps) }
	}},
	{"does not wait for Revoked", "group/revoke-first", func(b *broken) {
		b.relay.revoked = func(h driver.Handler, ctx context.Context, tps []driver.TopicPartition) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			go func() {
				defer cancel()
				h.Revoked(ctx, tps)
			}()
		}
	}},
	{"revokes without a limit", "group/share", func(b *broken) {
		b.relay.revoked = func(h driver.Handler, ctx context.Context, tps []driver.TopicPartition) {
			h.Revoked(context.WithoutCancel(ctx), tps)
		}
	}},
	{"calls Revoked where all is lost", "lost/told", func(b *broken) {
		b.relay.lost = func(h driver.Handler, tps []driver.TopicPartition) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			h.Revoked(ctx, tps)
		}
	}},
	{"says nothing of a loss", "lost/told", func(b *broken) {
		b.relay.lost = func(driver.Handler, []driver.TopicPartition) {}
	}},
	{"closes without a word", "close/lets-go", func(b *broken) {
		b.relay.revoked = func(driver.Handler, context.Context, []driver.TopicPartition) {}
	}},
	{"fails at a second close", "close/twice", func(b *broken) {
		closed := false
		b.close = func(ctx context.Context) error {
			if closed {
				return errors.New("closed twice")
			}
			closed = true
			return b.Source.Close(ctx)
		}
	}},
	{"closes without a limit", "close/stuck-handler", func(b *broken) {
		b.close = func(ctx context.Context) error { return b.Source.Close(context.WithoutCancel(ctx)) }
	}},
	{"cuts handlers off at close", "close/slow-handler", func(b *broken) {
		b.close = func(context.Context) error {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_ = b.Source.Close(ctx)
			return nil
		}
	}},
	{"tells no protocol", "start/info", func(b *broken) {
		b.info = func(i *driver.Info) { i.Protocol = "" }
	}},
	{"does not look for its topics", "start/missing-topic", func(b *broken) {
		b.start = func(ctx context.Context, extra []driver.Subscription, h driver.Handler) error {
			_ = b.Source.Start(ctx, extra, h)
			return nil
		}
	}},
	{"starts twice", "start/once", func(b *broken) {
		started := false
		b.start = func(ctx context.Context, extra []driver.Subscription, h driver.Handler) error {
			if started {
				return nil
			}
			started = true
			return b.Source.Start(ctx, extra, h)
		}
	}},
	{"starts when closed", "start/after-close", func(b *broken) {
		b.start = func(ctx context.Context, extra []driver.Subscription, h driver.Handler) error {
			err := b.Source.Start(ctx, extra, h)
			if errors.Is(err, driver.ErrClosed) {
				err = nil
			}
			return err
		}
	}},
	{"starts without heeding the context", "start/context", func(b *broken) {
		b.start = func(ctx context.Context, extra []driver.Subscription, h driver.Handler) error {
			return b.Source.Start(context.WithoutCancel(ctx), extra, h)
		}
	}},
	{"forgets the extra topics", "start/extra", func(b *broken) {
		b.start = func(ctx context.Context, _ []driver.Subscription, h driver.Handler) error {
			return b.Source.Start(ctx, nil, h)
		}
	}},
	{"answers what was not asked", "commit/nothing", func(b *broken) {
		b.commit = func(ctx context.Context, offsets []driver.Offset) []error {
			if len(offsets) == 0 {
				return []error{nil}
			}
			return b.Source.Commit(ctx, offsets)
		}
	}},
	{"begins one too early", "position/end", func(b *broken) {
		b.commit = func(ctx context.Context, offsets []driver.Offset) []error {
			offsets = slices.Clone(offsets)
			for i := range offsets {
				offsets[i].Offset = max(offsets[i].Offset-1, 0)
			}
			return b.Source.Commit(ctx, offsets)
		}
	}},
	{"does not pause what is just being assigned", "pause/before-records", func(b *broken) {
		var assigning atomic.Bool
		b.relay.assigned = func(h driver.Handler, as []driver.Assignment) {
			assigning.Store(true)
			h.Assigned(as)
			assigning.Store(false)
		}
		b.pause = func(tps []driver.TopicPartition) {
			if !assigning.Load() {
				b.Source.Pause(tps)
			}
		}
	}},
	{"throws away what it has at a pause", "pause/buffered", func(b *broken) {
		var paused atomic.Bool
		b.pause = func(tps []driver.TopicPartition) {
			paused.Store(true)
			b.Source.Pause(tps)
		}
		b.batch = func(b *driver.Batch) {
			if len(b.Records) > 1 && paused.Swap(false) {
				b.Records = b.Records[1:]
			}
		}
	}},
	{"does not poll while it drains", "poll/rebalance", func(b *broken) {
		gate := make(chan struct{}, 1) // a mutex would not block durably
		b.relay.revoked = func(h driver.Handler, ctx context.Context, tps []driver.TopicPartition) {
			gate <- struct{}{}
			h.Revoked(ctx, tps)
			<-gate
		}
		b.poll = func(ctx context.Context, limit int) ([]driver.Batch, error) {
			gate <- struct{}{}
			defer func() { <-gate }()
			bounded, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			batches, err := b.Source.Poll(bounded, limit)
			if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
				err = nil
			}
			return batches, err
		}
	}},
	{"polls on when it is closed", "poll/close-ends-it", func(b *broken) {
		b.poll = func(ctx context.Context, limit int) ([]driver.Batch, error) {
			batches, err := b.Source.Poll(ctx, limit)
			if errors.Is(err, driver.ErrClosed) {
				<-ctx.Done()
			}
			return batches, err
		}
	}},
	{"leaves its group when nothing comes", "poll/stays", func(b *broken) {
		b.relay.assigned = func(h driver.Handler, as []driver.Assignment) {
			h.Assigned(as)
			time.AfterFunc(time.Minute, b.Source.(*memsource.Source).Lose)
		}
	}},
	{"skips a record where it goes on at a commit", "group/twice", func(b *broken) {
		var resumed sync.Map
		b.relay.assigned = func(h driver.Handler, as []driver.Assignment) {
			for _, a := range as {
				if a.Committed > 0 {
					resumed.Store(a.TopicPartition, true)
				}
			}
			h.Assigned(as)
		}
		b.batch = func(b *driver.Batch) {
			if len(b.Records) == 0 {
				return
			}
			if _, ok := resumed.LoadAndDelete(b.TopicPartition); ok {
				b.Records = b.Records[1:]
			}
		}
	}},
	{"takes old records for new ones", "group/after-revoked", func(b *broken) {
		newest := map[driver.TopicPartition]uint64{}
		var mu sync.Mutex
		b.relay.assigned = func(h driver.Handler, as []driver.Assignment) {
			h.Assigned(as)
			mu.Lock()
			defer mu.Unlock()
			for _, a := range as {
				newest[a.TopicPartition] = a.Generation
			}
		}
		kept := map[driver.TopicPartition]driver.Batch{}
		b.batch = func(batch *driver.Batch) {
			mu.Lock()
			defer mu.Unlock()
			if old, ok := kept[batch.TopicPartition]; ok && old.Generation < newest[batch.TopicPartition] && batch.Generation > old.Generation {
				batch.Records = append(slices.Clone(old.Records), batch.Records...) // as a buffer that outlived its assignment
			}
			kept[batch.TopicPartition] = *batch
		}
	}},
}

// stickyPause pauses again what was paused before.
func stickyPause(b *broken) {
	var paused sync.Map
	b.pause = func(tps []driver.TopicPartition) {
		for _, tp := range tps {
			paused.Store(tp, true)
		}
		b.Source.Pause(tps)
	}
	b.relay.assigned = func(h driver.Handler, as []driver.Assignment) {
		h.Assigned(as)
		for _, a := range as {
			if _, ok := paused.Load(a.TopicPartition); ok {
				b.Source.Pause([]driver.TopicPartition{a.TopicPartition})
			}
		}
	}
}
