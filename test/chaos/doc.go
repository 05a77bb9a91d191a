// Package chaos runs consumers of every fenced kind on a real Kafka of three
// brokers and a real Redis while members are killed, paused, added and stopped,
// Redis is killed and started again, brokers are killed and started again, and a
// proxy before Redis delays, drops, half-closes and eats replies. The source
// topics hold transactions, some of them aborted. A ledger outside counts.
//
//	go test ./test/chaos              a short run
//	go run ./test/chaos/cmd           the long one (make chaos)
//	go run ./test/chaos/cmd -seed N   the same order of events again
//
// It needs the servers as programs of this machine, since it kills them.
package chaos
