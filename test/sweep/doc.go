// Package sweep kills consumers at every named fault point and counts from the
// outside what became of each record.
//
// A chain is one kind of effect on one store: a Kafka-protocol broker and a sink
// in this process, a member in a child process. In each round more lines are
// sent (duplicates, conflicts, poison, temporary and permanent errors, unknown
// outcomes among them), the member is started with one fault point armed, and
// when it has killed itself there the next round begins on what it left. At the
// end a member without faults catches up, and package account says what became
// of each line.
//
//	go test ./test/sweep                        each point once for each kind and store
//	go run ./test/sweep/cmd -kills 1000         the long form
//	go run ./test/sweep/cmd -seed N             the same lines, points and counts again
//
// A point that was not reached is reported: a sweep that did not kill proves
// nothing.
package sweep
