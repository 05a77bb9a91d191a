// Package effecttest puts a user's own effect under the crashes that the
// consumer loop has to live with, and says in words whether it is of the kind
// that it was given.
//
//	case                       rows for
//	first run                  every kind
//	run twice                  Idempotent, AtLeastOnce
//	crash before the effect    Idempotent, Probed, AtLeastOnce
//	crash after the effect     Idempotent, Probed, AtLeastOnce
//	context already over       every kind
//	answered late              every kind
//	resumed as a zombie        Idempotent, Probed
//	refused for now            every kind, with Config.Refuse
//	refused for good           every kind, with Config.Reject
//	several in one call        batch forms
//
// A crash is a run whose answer is thrown away; after it the package does what
// the loop does for the kind: run again with the same effect id and a higher
// token, or ask the probe. Run returns a Report and needs no framework; Test
// makes a subtest of each row.
//
// A passed report is no proof. It cannot know how long the sink remembers, nor
// what lies in a queue longer than Settled. It must run against the real sink,
// or against one that behaves like it; against a mock it tests the mock.
package effecttest
