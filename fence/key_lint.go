package fence

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// LintKey looks in a canonical text for parts that change from one send of an
// event to the next and so defeat dedupe: times and random numbers. It answers
// one sentence per suspect part, none for a text it has nothing against.
//
// It knows by their shape: a date with a time of day, Unix seconds to
// nanoseconds between 2015 and 2040, UUIDs of the versions made from a clock
// or at random, and ULIDs. It cannot tell such an id that the event carries,
// which is fine, from one that is made anew at each send, and it takes a
// decimal id of the right size for a time. It cannot know random numbers of
// other shapes from hashes. Fallback ids are not suspected. A text that is not
// canonical is answered with that error.
func LintKey(text string) []string {
	parts, err := ParseKey(text)
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	for i, p := range parts {
		if p.IsNil() || p.IsFallback() {
			continue
		}
		if what := suspect(string(p.Value())); what != "" {
			found = append(found, fmt.Sprintf("part %d holds %s: right if the event itself carries it, wrong if each send makes a new one", i+1, what))
		}
	}
	return found
}

// lintShapes are compiled when the first key is linted: most programs never do.
var lintShapes = sync.OnceValue(func() (s struct{ date, digits, uuid, ulid *regexp.Regexp }) {
	s.date = regexp.MustCompile(`(?:^|\D)(?:19|20)\d\d-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])[T _]?(?:[01]\d|2[0-3]):?[0-5]\d`)
	s.digits = regexp.MustCompile(`[0-9A-Za-z]+`)
	s.uuid = regexp.MustCompile(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-([1-8])[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b`)
	s.ulid = regexp.MustCompile(`\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b`)
	return s
})

// suspect says what in s looks like a time or like chance, "" if nothing does.
func suspect(s string) string {
	shapes := lintShapes()
	if m := shapes.uuid.FindStringSubmatch(s); m != nil {
		switch m[1] {
		case "1", "2", "6", "7":
			return "a UUID made from a clock (version " + m[1] + ")"
		case "4":
			return "a random UUID (version 4)"
		default:
			return "" // made from a name
		}
	}
	if m := shapes.ulid.FindString(s); m != "" && plausible(ulidMillis(m), time.Millisecond) {
		return "a ULID, which is a time and a random number"
	}
	for _, word := range shapes.digits.FindAllString(s, -1) {
		if unit, name := unixUnit(len(word)); unit > 0 {
			if n, err := strconv.ParseInt(word, 10, 64); err == nil && plausible(n, unit) {
				return "what may be a time in Unix " + name
			}
		}
	}
	if shapes.date.MatchString(s) {
		return "a date with a time of day"
	}
	return ""
}

// unixUnit returns the unit in which a time of our days has so many digits.
func unixUnit(digits int) (time.Duration, string) {
	switch digits {
	case 10:
		return time.Second, "seconds"
	case 13:
		return time.Millisecond, "milliseconds"
	case 16:
		return time.Microsecond, "microseconds"
	case 19:
		return time.Nanosecond, "nanoseconds"
	default:
		return 0, ""
	}
}

// plausible reports whether n units after 1970 lie between 2015 and 2040.
func plausible(n int64, unit time.Duration) bool {
	const from, to = 1420070400, 2208988800
	perSecond := int64(time.Second / unit)
	return n >= from*perSecond && n < to*perSecond
}

// ulidMillis reads the time of a ULID: its first ten digits in base 32.
func ulidMillis(ulid string) (ms int64) {
	for i := range 10 {
		ms = ms<<5 | int64(strings.IndexByte("0123456789ABCDEFGHJKMNPQRSTVWXYZ", ulid[i]))
	}
	return ms
}
