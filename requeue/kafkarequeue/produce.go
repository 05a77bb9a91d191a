package kafkarequeue

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncefence/oncefence/consumer/driver"
	"github.com/oncefence/oncefence/requeue"
)

var (
	errNotEnsured = errors.New("topic was not accepted by Ensure: call Ensure with it first")
	errNoOffset   = errors.New("the broker acknowledged the record without an offset: it may or may not be in the topic")
	errNoAnswer   = errors.New("no answer in time: the record may or may not be in the topic")
)

// Produce writes the records as driver.Producer says, within
// Options.DeliveryTimeout. All go out at once and share batches. In franz-go a
// batch that a broker refuses takes all records down with it that wait for the
// same partition, so those that were refused for what a record is are sent again,
// one by one: each gets its own answer, and one bad record spoils no other. For
// the same reason driver.ErrTooLarge is always about the record itself. A record
// larger than MaxBytes is sent by itself from the start.
func (p *producer) Produce(ctx context.Context, records []driver.Record) []error {
	ctx, cancel := context.WithTimeout(ctx, p.opts.DeliveryTimeout)
	defer cancel()
	errs := make([]error, len(records))
	var together, single []int
	for i, rec := range records {
		switch known := p.MaxBytes(rec.Topic); {
		case known == 0:
			errs[i] = errNotEnsured
		case requeue.Size(rec) > known:
			single = append(single, i)
		default:
			together = append(together, i)
		}
	}
	for round := 0; round < maxRounds && len(together) > 0; round++ {
		p.produceTogether(ctx, records, together, errs)
		var again []int
		for _, i := range together {
			switch {
			case ofRecord(errs[i]):
				single = append(single, i)
			case ofOthers(ctx, errs[i]):
				again = append(again, i)
			}
		}
		together = again
	}
	p.produceSingly(ctx, records, single, errs)
	for i, err := range errs {
		if err != nil {
			errs[i] = fmt.Errorf("kafka requeue: produce to topic %s: %w", records[i].Topic, err)
		}
	}
	return errs
}

// maxRounds is how often records are sent that others took down with them.
const maxRounds = 3

// answer is what became of records[i].
type answer struct {
	i   int
	err error
}

// produceTogether writes some of the records through the shared client.
func (p *producer) produceTogether(ctx context.Context, records []driver.Record, which []int, errs []error) {
	answers := make(chan answer, len(which)) // never blocks the client's callbacks
	for _, i := range which {
		errs[i] = errNoAnswer
		p.client.Produce(ctx, toKgo(records[i]), func(r *kgo.Record, err error) {
			answers <- answer{i, verdict(r, err)}
		})
	}
	for range which {
		select {
		case a := <-answers:
			errs[a.i] = a.err
		case <-ctx.Done():
			drain(answers, errs)
			return
		}
	}
}

// drain takes the answers that have come already.
func drain(answers <-chan answer, errs []error) {
	for {
		select {
		case a := <-answers:
			errs[a.i] = a.err
		default:
			return
		}
	}
}

// verdict turns the client's answer into one that can be trusted: nil only with
// an offset. (A broker's DUPLICATE_SEQUENCE_NUMBER comes out of franz-go as
// success without one.)
func verdict(r *kgo.Record, err error) error {
	switch {
	case errors.Is(err, kgo.ErrClientClosed):
		return fmt.Errorf("%w: %w", driver.ErrClosed, err)
	case err != nil:
		return err
	case r.Offset < 0:
		return errNoOffset
	default:
		return nil
	}
}

// ofRecord reports whether an error is about what a record is, so that another
// record may fare better.
func ofRecord(err error) bool {
	for _, code := range []error{
		kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidRecord,
		kerr.InvalidTimestamp, kerr.CorruptMessage, kerr.PolicyViolation,
	} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}

// ofOthers reports whether a record failed because another call gave up on a
// record of the same partition: franz-go then fails all that wait behind it.
func ofOthers(ctx context.Context, err error) bool {
	return ctx.Err() == nil &&
		(errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, kgo.ErrRecordTimeout))
}

// toKgo converts a record. Slices are shared: the client only reads them.
func toKgo(rec driver.Record) *kgo.Record {
	out := &kgo.Record{Topic: rec.Topic, Key: rec.Key, Value: rec.Value}
	if len(rec.Headers) > 0 {
		out.Headers = make([]kgo.RecordHeader, len(rec.Headers))
		for i, h := range rec.Headers {
			out.Headers[i] = kgo.RecordHeader{Key: h.Key, Value: h.Value}
		}
	}
	return out
}
