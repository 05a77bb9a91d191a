package memsource_test

import (
	"testing"
	"testing/synctest"

	"github.com/oncefence/oncefence/consumer/driver"
)

// A member that was thrown out twice, the first time without its noticing, is in
// the group once.
func TestLoseAfterEvict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, "a", 1)
		m := start(t, b, nil, "a")
		m.last(t)
		m.Evict()
		m.Lose()
		m.last(t)
		for range 2 {
			if err := m.Commit(background, []driver.Offset{{TopicPartition: tp("a", 0), LeaderEpoch: -1}})[0]; err != nil {
				t.Fatal(err)
			}
		}
		if b.Owner("g", tp("a", 0)) != m.Source {
			t.Error("the member lost its partition with its commit")
		}
	})
}
