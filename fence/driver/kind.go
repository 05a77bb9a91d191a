package driver

// Kind is the kind of effect that a claim is for. It decides what happens
// when nobody knows whether the effect was applied. The numbers are part of
// the stored record and never change.
type Kind uint8

const (
	// KindNone is the zero Kind. No record holds it.
	KindNone Kind = 0
	// KindTransactional shares one database transaction with its fence.
	KindTransactional Kind = 1
	// KindIdempotent has a sink that dedupes by effect id, or a plain overwrite.
	KindIdempotent Kind = 2
	// KindProbed has a sink that can be asked what happened to an effect id.
	KindProbed Kind = 3
	// KindAtMostOnce has none of these: what is in doubt is never run again.
	KindAtMostOnce Kind = 4
	// KindAtLeastOnce tolerates repeats and uses no fence.
	KindAtLeastOnce Kind = 5
)

var kindNames = [...]string{"none", "transactional", "idempotent", "probed", "at-most-once", "at-least-once"}

// String returns the name used in logs, metrics and on the command line.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}
