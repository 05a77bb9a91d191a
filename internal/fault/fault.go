// Package fault names the places where a crash would hurt. Built with the tag
// faults, a process kills itself at one of them when it is told to; without the
// tag a point costs nothing.
//
// ONCEFENCE_FAULT=NAME:N kills the process (SIGKILL, no deferred calls, no
// flushes) when it passes the point NAME for the Nth time, from 1.
package fault

// The points, in the order in which a delivery meets them. Each is passed once a
// batch or once a record, as its comment says.
const (
	ClaimBefore    = "claim.before"    // a claim batch is about to be sent
	ClaimAfter     = "claim.after"     // it was answered, nobody knows yet
	EffectBefore   = "effect.before"   // a record's effect is about to be called
	EffectAfter    = "effect.after"    // it has returned, nothing is written
	ApplyBefore    = "apply.before"    // a batch of transitions is about to be sent
	ApplyAfter     = "apply.after"     // it was answered, nobody knows yet
	SealAfter      = "seal.after"      // a record is sealed, not settled
	RetryAfter     = "retry.after"     // a retry is said, its copy not produced
	GiveUpAfter    = "give_up.after"   // a give_up is said, its dead letter not produced
	ProduceBefore  = "produce.before"  // copies are about to be produced
	ProduceAfter   = "produce.after"   // they were acknowledged, nothing is handed over
	HandOverAfter  = "hand_over.after" // a record is handed over, not settled
	BuryAfter      = "bury.after"      // a record is buried, not settled
	ReleaseAfter   = "release.after"   // a claim is released
	ProbeAfter     = "probe.after"     // a probe has answered, nothing follows yet
	CommitBefore   = "commit.before"   // a commit is about to be sent
	CommitAfter    = "commit.after"    // it was answered, nobody knows yet
	MarkAfter      = "mark.after"      // the marker was written
	AssignedAfter  = "assigned.after"  // partitions were assigned
	RevokedBefore  = "revoked.before"  // partitions are about to be given up
	TransactBefore = "transact.before" // a transaction with effects is about to commit
	TransactAfter  = "transact.after"  // it has committed, nobody knows yet
)

// Points lists all names.
func Points() []string {
	return []string{
		ClaimBefore, ClaimAfter, EffectBefore, EffectAfter, ApplyBefore, ApplyAfter, SealAfter, RetryAfter, GiveUpAfter,
		ProduceBefore, ProduceAfter, HandOverAfter, BuryAfter, ReleaseAfter, ProbeAfter, CommitBefore, CommitAfter, MarkAfter,
		AssignedAfter, RevokedBefore, TransactBefore, TransactAfter,
	}
}
