package driver

import (
	"context"
	"errors"
)

// Errors of transactions that a store shares with effects.
var (
	// ErrTxFailed: a statement in the transaction failed. Nothing more can be
	// written in it before Tx.Rollback.
	ErrTxFailed = errors.New("a statement failed: the transaction takes no more until it is rolled back to its savepoint")
	// ErrTxEnded: the effect committed or rolled back the transaction that it was
	// given. What it wrote may stand without the record of its claim.
	ErrTxEnded = errors.New("the effect ended the transaction that its claim and its seal are part of")
	// ErrCommitRefused: the database refused the commit, by a constraint that is
	// checked then or because of another transaction. Nothing was written.
	ErrCommitRefused = errors.New("the database refused the commit: nothing was written")
)

// Transactor is a Store that shares its database with effects: claims, what the
// effects write, and what becomes of the claims are one transaction. It is found
// by a type assertion on a Store.
type Transactor interface {
	Store

	// Handle returns a nil of the type that effects are given as their
	// transaction, so that an effect that wants another one is refused before
	// anything runs.
	Handle() any

	// Limits returns the most claims of one Transact, and how many of them may run
	// at once before further ones wait; 0 is without a limit.
	Limits() (claims, transactions int)

	// Transact decides the claims in a transaction, calls work, writes what work
	// answered and commits. It answers in order, no two claims have the same Key.
	//
	// A claim is decided as by Claim. The keys that were granted stay locked
	// until the transaction ends, so that nobody else is granted them, but their
	// records are not written yet. If any was granted, work is called once. It
	// answers one transition per claim: Release for a claim that is to be as if it
	// had not been made, else a transition that is decided on the record that was
	// granted. Transitions of claims that were not granted are not read.
	//
	// If work answers an error, or ctx has ended when it returns, or it does not
	// return (a panic, runtime.Goexit), everything is rolled back and the error is
	// that of each granted claim. The commit itself is not cut short by ctx. When
	// its answer does not come, Transact waits for the keys' locks on another
	// connection and looks what is there.
	//
	// An answer whose Claimed.Err is not nil failed, or nobody knows: ask again
	// with the same claim, which then meets what was written, if it was. Errors
	// match ErrCommitRefused and ErrTxEnded where these are the reason.
	Transact(ctx context.Context, namespace string, claims []Claim, work func(tx Tx, claimed []Claimed) ([]Transition, error)) []Transacted
}

// Tx is a transaction under way. It belongs to the goroutine that work runs in.
type Tx interface {
	// Handle is what effects write through until work returns.
	Handle() any
	// Check returns nil while statements are taken, else ErrTxFailed, ErrTxEnded
	// or why the connection cannot be used. It asks no server.
	Check() error
	// Savepoint keeps what was written and marks the place that Rollback returns
	// to. It blocks for the server, if it has to ask one.
	Savepoint(ctx context.Context) error
	// Rollback takes back what was written since the last Savepoint, which stays.
	Rollback(ctx context.Context) error
}

// Transacted answers one claim of Transact.
type Transacted struct {
	// Claimed is what the claim met.
	Claimed Claimed
	// Outcome is what became of a claim that was granted, NoOutcome for one that
	// was released.
	Outcome Outcome
	// Record is the record that now stands, for a claim that was granted and not
	// released, else nil.
	Record *Record
}
