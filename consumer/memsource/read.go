package memsource

import (
	"context"
	"fmt"

	"github.com/oncefence/oncefence/consumer/driver"
)

// Read implements [driver.Reader].
func (s *Source) Read(_ context.Context, tp driver.TopicPartition, offset int64) (driver.Record, error) {
	for _, r := range s.broker.Records(tp.Topic) {
		if r.Partition == tp.Partition && r.Offset == offset {
			return r, nil
		}
	}
	return driver.Record{}, fmt.Errorf("%s partition %d has no record at offset %d", tp.Topic, tp.Partition, offset)
}
