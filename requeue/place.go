package requeue

import "time"

// Kind says what a topic is to a group.
type Kind uint8

const (
	// SourceTopic is a topic that the group was asked to read. Identity headers
	// in its records are the user's own and mean nothing here.
	SourceTopic Kind = iota + 1
	// RetryTopic is one of the group's own topics where copies wait.
	RetryTopic
	// DeadLetterTopic is one of the group's own topics where dead letters lie.
	DeadLetterTopic
)

// String returns "source", "retry" or "dead letter".
func (k Kind) String() string {
	switch k {
	case SourceTopic:
		return "source"
	case RetryTopic:
		return "retry"
	case DeadLetterTopic:
		return "dead letter"
	default:
		return "unknown"
	}
}

// Place says what a topic is to the group.
type Place struct {
	Topic  string
	Source string // the source topic that it belongs to, or is
	Kind   Kind
	// Delay is the delay in the name of a retry topic.
	Delay time.Duration
	// Longest is the longest time that a record waits in a retry topic: Delay
	// with the most jitter. Zero means Delay.
	Longest time.Duration
}

// wait returns how long a copy waits here, of the time that it has to wait.
func (p Place) wait(delay time.Duration) time.Duration {
	if p.Kind != RetryTopic {
		return 0
	}
	return max(0, min(delay, max(p.Longest, p.Delay)))
}
