package kafkarequeue

import (
	"fmt"
	"time"

	"github.com/oncefence/oncefence/consumer/driver"
)

const logAppendTime = "LogAppendTime"

// judge compares a topic with its spec and with its source topic. It returns
// what is refused and what is tolerated, in sentences.
func judge(spec driver.TopicSpec, t, source topic) (bad, tolerated []string) {
	refuse := func(name, want, why string) {
		bad = append(bad, fmt.Sprintf("%s is %q, need %s: %s; change it with: %s",
			name, t.config[name], want, why, alterCommand(spec.Topic, name, want)))
	}
	if t.config[cleanupPolicy] != "delete" {
		refuse(cleanupPolicy, "delete", "compaction drops all but the last copy of a key")
	}
	if floor := int(spec.Retention / time.Millisecond); floor > 0 {
		if have := t.number(retentionMs, 0); have >= 0 && have < floor {
			refuse(retentionMs, fmt.Sprint(floor), "copies would be deleted before they are read")
		}
	}
	if want := source.number(maxMessageBytes, 0); t.number(maxMessageBytes, unknownLimit) < want {
		refuse(maxMessageBytes, fmt.Sprint(want), "source topic "+spec.Like+" takes records of that size")
	}
	if want := source.number(minInsync, 1); t.number(minInsync, 1) < want {
		refuse(minInsync, fmt.Sprint(want), "source topic "+spec.Like+" asks for that many")
	}
	if t.replicas < source.replicas {
		bad = append(bad, fmt.Sprintf("it has %d replicas, source topic %s has %d: add replicas with kafka-reassign-partitions.sh, or delete it while it is empty and let it be made anew", t.replicas, spec.Like, source.replicas))
	}
	if spec.AppendTime && t.config[timestampType] != logAppendTime {
		tolerated = append(tolerated, "retry topic has no append time: delays count from receipt and a copy that is delivered twice waits twice; change it with: "+alterCommand(spec.Topic, timestampType, logAppendTime))
	}
	if t.partitions < source.partitions {
		tolerated = append(tolerated, fmt.Sprintf("copy topic has %d partitions, its source topic %d: fewer members share the copies", t.partitions, source.partitions))
	}
	if t.number(retentionBytes, -1) >= 0 {
		tolerated = append(tolerated, "copy topic has a limit in bytes (retention.bytes): copies may be deleted before their time; change it with: "+alterCommand(spec.Topic, retentionBytes, "-1"))
	}
	return bad, tolerated
}

func alterCommand(topic, name, value string) string {
	return fmt.Sprintf("kafka-configs.sh --bootstrap-server BROKERS --alter --entity-type topics --entity-name %s --add-config %s=%s", topic, name, value)
}
