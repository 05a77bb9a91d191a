package requeue

import "strings"

// The library's headers, each at most once in a copy.
const (
	prefix = "oncefence-"
	// userPrefix is put before a user's own header that looks like ours.
	userPrefix = "user-"

	headerVersion          = prefix + "version"
	headerKey              = prefix + "key"
	headerNamespace        = prefix + "namespace"
	headerAttempt          = prefix + "attempt"
	headerStep             = prefix + "step"
	headerDelay            = prefix + "delay"
	headerOrigin           = prefix + "origin"
	headerFirstSeen        = prefix + "first-seen"
	headerReason           = prefix + "reason"
	headerClass            = prefix + "class"
	headerError            = prefix + "error"
	headerFingerprint      = prefix + "fingerprint"
	headerOtherFingerprint = prefix + "other-fingerprint"
	headerPointer          = prefix + "pointer"
)

// hasFoldPrefix is strings.HasPrefix without regard to case; p is lower case.
func hasFoldPrefix(s, p string) bool {
	return len(s) >= len(p) && strings.EqualFold(s[:len(p)], p)
}

// looksOurs reports whether a header name begins as the library's do, in any
// case. In a copy such a header is the library's.
func looksOurs(name string) bool { return hasFoldPrefix(name, prefix) }

// hideUser returns the name under which a user's header travels in a copy: any
// number of user- before oncefence- gets one more, so that [showUser] is exact
// even for a user who chose such a name.
func hideUser(name string) string {
	rest := name
	for strings.HasPrefix(rest, userPrefix) {
		rest = rest[len(userPrefix):]
	}
	if looksOurs(rest) {
		return userPrefix + name
	}
	return name
}

// showUser is the inverse of hideUser.
func showUser(name string) string {
	if shown, ok := strings.CutPrefix(name, userPrefix); ok && hideUser(shown) == name {
		return shown
	}
	return name
}
