package requeue

import (
	"fmt"
	"strings"
	"time"
)

// maxTopicName is the longest topic name that brokers take.
const maxTopicName = 249

// Names says what retry and dead-letter topics are called.
type Names struct {
	// Group is the consumer group. Each group has its own topics: a copy is
	// meant for one group only. It must not be empty.
	Group string
	// Retry names the retry topic of a source topic for a delay. Nil means
	// <topic>.<group>.retry.<delay>, the delay as [FormatDelay] writes it.
	Retry func(topic, group string, delay time.Duration) string
	// DeadLetter names the dead-letter topic of a source topic. Nil means
	// <topic>.<group>.dlq.
	DeadLetter func(topic, group string) string
}

// retry returns the name of a retry topic. In the default name, bytes that a
// topic name may not hold become _XX (their hexadecimal value).
func (n Names) retry(topic string, delay time.Duration) string {
	if n.Retry != nil {
		return n.Retry(topic, n.Group, delay)
	}
	return legalName(topic) + n.retryMark() + FormatDelay(delay)
}

func (n Names) deadLetter(topic string) string {
	if n.DeadLetter != nil {
		return n.DeadLetter(topic, n.Group)
	}
	return legalName(topic) + n.deadLetterMark()
}

func (n Names) retryMark() string      { return "." + legalName(n.Group) + ".retry." }
func (n Names) deadLetterMark() string { return "." + legalName(n.Group) + ".dlq" }

// checkSource refuses a source topic that is one of the group's own: its dead
// letters would be consumed, fail again and go round for ever.
func (n Names) checkSource(topic string) error {
	if topic == "" {
		return fmt.Errorf("topics: an empty source topic: give it a name")
	}
	if n.Retry == nil {
		if i := strings.LastIndex(topic, n.retryMark()); i >= 0 {
			if _, err := ParseDelay(topic[i+len(n.retryMark()):]); err == nil {
				return fmt.Errorf("topics: source topic %s is a retry topic of group %s itself: it is read anyway, leave it out", topic, n.Group)
			}
		}
	}
	if n.DeadLetter == nil && strings.HasSuffix(topic, n.deadLetterMark()) {
		return fmt.Errorf("topics: source topic %s holds the dead letters of group %s: replay them, read them with another group, or name the next stage with Names.DeadLetter", topic, n.Group)
	}
	return nil
}

// legalName replaces the bytes that a topic name may not hold.
func legalName(s string) string {
	const upperHex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; legalTopicByte(c) {
			b.WriteByte(c)
		} else {
			b.WriteByte('_')
			b.WriteByte(upperHex[c>>4])
			b.WriteByte(upperHex[c&15])
		}
	}
	return b.String()
}

func legalTopicByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
}

// checkTopicName refuses what no broker takes.
func checkTopicName(name string) error {
	if name == "" || name == "." || name == ".." {
		return fmt.Errorf("%q is not a topic name", name)
	}
	if len(name) > maxTopicName {
		return fmt.Errorf("the name is %d bytes long, brokers take %d: shorten topic or group, or set Names.Retry and Names.DeadLetter", len(name), maxTopicName)
	}
	for i := range len(name) {
		if !legalTopicByte(name[i]) {
			return fmt.Errorf("byte %d (0x%02x) may not stand in a topic name: use letters, digits, dot, underscore and dash", i, name[i])
		}
	}
	return nil
}
