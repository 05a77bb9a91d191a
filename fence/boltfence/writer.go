package boltfence

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"github.com/oncefence/oncefence/fence/driver"
)

// maxItems is about how many items share a transaction: beyond it further
// batches wait for the next one.
const maxItems = 4096

// job is one batch that waits for a transaction.
type job struct {
	ctx   context.Context
	items int
	// run decides the batch on tx. Its error fails the whole transaction.
	run   func(tx *transaction) error
	state atomic.Int32
	done  chan struct{} // closed after err was set
	err   error
}

const (
	waiting int32 = iota
	running
	abandoned
)

// write runs a batch in a transaction, together with others that wait, and
// returns when it is on disk. An error means that nothing was written, unless
// it says otherwise. A context that ends gives the batch up while it waits for
// its turn; once its transaction has begun, the disk is waited for.
func (s *Store) write(ctx context.Context, items int, urgent bool, run func(tx *transaction) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j := &job{ctx: ctx, items: items, run: run, done: make(chan struct{})}
	if err := s.enqueue(j, urgent); err != nil {
		return err
	}
	select {
	case <-j.done:
	case <-ctx.Done():
		if j.state.CompareAndSwap(waiting, abandoned) {
			return ctx.Err()
		}
		<-j.done
	}
	return j.err
}

func (s *Store) enqueue(j *job, urgent bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	if urgent {
		s.urgent = append(s.urgent, j)
	} else {
		s.queue = append(s.queue, j)
	}
	s.wake.Signal()
	return nil
}

// writeLoop is the only writer. It takes what waits, commits it, and takes
// what came meanwhile: nobody waits when the disk is idle.
func (s *Store) writeLoop() {
	defer close(s.written)
	for {
		jobs := s.take()
		if jobs == nil {
			return
		}
		err := s.commit(jobs)
		for _, j := range jobs {
			if j.err == nil {
				j.err = err
			}
			close(j.done)
		}
	}
}

// take waits for jobs, renewals first; nil means closed.
func (s *Store) take() (jobs []*job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.urgent)+len(s.queue) == 0 {
		if s.closed {
			return nil
		}
		s.wake.Wait()
	}
	items := 0
	for _, queue := range []*[]*job{&s.urgent, &s.queue} {
		n := 0
		for n < len(*queue) && (items == 0 || items+(*queue)[n].items <= maxItems) {
			items += (*queue)[n].items
			n++
		}
		jobs = append(jobs, (*queue)[:n]...)
		*queue = slices.Delete(*queue, 0, n)
	}
	return jobs
}

// commit runs the jobs in one transaction. Its error is that of all jobs that
// have none of their own.
func (s *Store) commit(jobs []*job) error {
	s.mu.Lock()
	err := s.broken
	s.mu.Unlock()
	if err != nil {
		return err
	}
	tx, err := s.db.Begin(true)
	if err != nil {
		return s.failed(err)
	}
	t := &transaction{tx: tx, now: driver.Micros(time.Now()), pack: s.pack}
	for _, j := range jobs {
		if !j.state.CompareAndSwap(waiting, running) {
			continue
		}
		if j.err = j.ctx.Err(); j.err != nil {
			continue
		}
		if err = j.run(t); err != nil {
			break
		}
	}
	if err == nil {
		err = t.finish()
	}
	s.pack = t.pack
	if err != nil || !t.changed {
		if rollback := tx.Rollback(); err == nil {
			err = rollback
		}
		return s.failed(err)
	}
	id := tx.ID()
	if err := s.commitTx(tx); err != nil {
		return s.commitFailed(id, err)
	}
	return nil
}

func (s *Store) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write fence file %s: nothing was written: %w", s.path, err)
}

// commitFailed tells a transaction that never was from one that may or may not
// be on disk. bbolt makes a transaction visible by its last write: if that one
// was done and its fsync failed, nothing that is read from now on is certain,
// and the store answers no more. Otherwise the next batch may do better: a disk
// that was full has room again.
func (s *Store) commitFailed(id int, cause error) error {
	err := s.db.View(func(tx *bbolt.Tx) error {
		if tx.ID() >= id {
			return fmt.Errorf("write fence file %s: it is not known whether the last batch is on disk, nothing more is written until the file is opened anew: %w", s.path, cause)
		}
		return nil
	})
	if err != nil {
		s.mu.Lock()
		s.broken = err
		s.mu.Unlock()
		return err
	}
	return s.failed(cause)
}
