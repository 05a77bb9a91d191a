// Package effect holds what a consumer does with a record: the user's
// function, its kind, and the outcomes it can have.
//
// There is no effect without a kind. The kind says what the sink can do, and
// so decides what happens when nobody knows whether the effect was applied: a
// process died in the middle, a request timed out after it was written.
//
// # The kinds and what they cost
//
//	kind          the sink must                in doubt or unknown     promised                 costs
//	Transactional be tables in the database    cannot be               exactly once             one transaction for claim,
//	              of the fence                                                                  effect and seal
//	Idempotent    dedupe by effect id for      run again, same id      exactly once             claim and seal (shared by
//	              Remembers, or be a plain                             in the sink              batches); a repeat of the
//	              overwrite (Forever)                                                           effect after a crash
//	Probed        answer for an effect id,     ask, then seal,         exactly once, if it      as Idempotent; a question
//	              finally after Settled        run or park             answers truly and        and a wait of Settled for
//	                                                                   Settled holds            each doubt; claims only
//	                                                                                            what can start at once
//	AtMostOnce    nothing                      never run again: park   at most once,            as Probed; a person for
//	                                                                   nothing in silence       each doubt
//	AtLeastOnce   tolerate repeats             run again               at least once            no fence at all: one run
//	                                                                                            per delivery
//
// In the words of the three delivery models: AtLeastOnce is "at least once",
// AtMostOnce is "at most once", Transactional, Idempotent and Probed are
// "exactly-once effect". The model is chosen for a consumer by the constructor of its
// effect, and by nothing else.
//
// In figures: a fenced kind adds two requests to the fence store for each
// record, one claim before and one seal after the effect. Both travel in
// batches, so at a batch of 500 that is 4 round trips for 1,000 records, plus
// a renewal every third of a lease for effects that run longer. Each key
// occupies the store for the retention of done records (14 days by default):
// records per second x retention x bytes per record is the size to plan for.
// The time a record waits for its claim and its seal comes on top of the time
// of the effect. AtLeastOnce pays none of this and repeats whatever was not
// committed at each crash, rebalance and replay, and every duplicate that the
// producer sends.
//
// # Choosing
//
// Does the sink take an idempotency key, or is the effect an upsert by an id
// from the record? Idempotent. Can it be asked "did you book this id"? Probed.
// Neither, and a second time hurts more than a missing one? AtMostOnce, and
// look at what is parked. Neither, and a second time hurts nobody?
// AtLeastOnce. A fence alone makes nothing exactly-once: no token and no lease
// reaches into a sink that does not look at them. Package effecttest shows
// whether an effect is of the kind it was given.
//
// # Outcomes
//
// An effect answers with a receipt, or with an error that Classify reads:
// Temporary and Permanent (Undecodable included) say that nothing was applied,
// and need proof. Everything else, time-outs and panics above all, is unknown
// and goes the way of the kind. Package httpeffect has an HTTP client that
// knows the proof: whether the request was written, and what a status says.
package effect
