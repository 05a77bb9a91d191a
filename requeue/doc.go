// Package requeue holds what a copy of a record is: when it comes back
// ([Schedule]), where it waits ([Names], [Topics]), what its headers say
// ([Copy], [Encode], [Decode]) and when it is due ([Due], [Hop], [AppendClock]).
//
// Nothing here talks to a broker; requeue/kafkarequeue does. Topic names and
// headers leave the process: other releases, other members of the group and
// people read them. Their format is fixed by [Version] and by golden tests.
//
// All functions are pure and all values may be shared by goroutines, unless a
// comment says otherwise.
package requeue
