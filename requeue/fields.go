package requeue

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// copyField is one header of a copy: how its text is made, and how it is read
// back, strictly. An empty text means no header.
type copyField struct {
	header   string
	required bool
	write    func(c *Copy) string
	read     func(c *Copy, text string) error
}

// copyFields are the library's headers behind the version, in the order in which
// they are written.
var copyFields = []copyField{
	textField(headerKey, false, func(c *Copy) *string { return &c.KeyText }),
	textField(headerNamespace, true, func(c *Copy) *string { return &c.Namespace }),
	numberField(headerAttempt, func(c *Copy) *uint32 { return &c.Attempt }),
	numberField(headerStep, func(c *Copy) *uint32 { return &c.Step }),
	{headerDelay, false, writeDelay, readDelay},
	{headerOrigin, true, func(c *Copy) string { return c.Origin.String() }, readOrigin},
	{headerFirstSeen, false, writeFirstSeen, readFirstSeen},
	textField(headerReason, false, func(c *Copy) *string { return &c.Reason }),
	textField(headerClass, false, func(c *Copy) *string { return &c.Class }),
	textField(headerError, false, func(c *Copy) *string { return &c.Error }),
	fingerprintField(headerFingerprint, func(c *Copy) *string { return &c.Fingerprint }),
	fingerprintField(headerOtherFingerprint, func(c *Copy) *string { return &c.OtherFingerprint }),
	{headerPointer, false, func(c *Copy) string { return c.Omitted }, readPointer},
}

func textField(header string, required bool, at func(*Copy) *string) copyField {
	return copyField{header, required, func(c *Copy) string { return *at(c) }, func(c *Copy, text string) error {
		if !isPrintable(text) {
			return errors.New("it is not printable ASCII")
		}
		*at(c) = text
		return nil
	}}
}

func numberField(header string, at func(*Copy) *uint32) copyField {
	return copyField{header, true, func(c *Copy) string { return strconv.FormatUint(uint64(*at(c)), 10) }, func(c *Copy, text string) (err error) {
		*at(c), err = parseNumber(text)
		return err
	}}
}

func fingerprintField(header string, at func(*Copy) *string) copyField {
	return copyField{header, false, func(c *Copy) string { return *at(c) }, func(c *Copy, text string) error {
		*at(c) = text
		return checkFingerprint(text)
	}}
}

func writeDelay(c *Copy) string {
	if c.Delay == 0 {
		return ""
	}
	return FormatDelay(c.Delay)
}

func readDelay(c *Copy, text string) (err error) {
	if c.Delay, err = ParseDelay(text); err == nil && c.Delay == 0 {
		err = errors.New("no delay has no header")
	}
	return err
}

func readOrigin(c *Copy, text string) (err error) {
	c.Origin, err = ParseOrigin(text)
	return err
}

func writeFirstSeen(c *Copy) string {
	if c.FirstSeen.IsZero() {
		return ""
	}
	return formatTime(c.FirstSeen)
}

func readFirstSeen(c *Copy, text string) (err error) {
	c.FirstSeen, err = parseTime(text)
	return err
}

func readPointer(c *Copy, text string) error {
	if !slices.Contains(omissions[1:], text) {
		return fmt.Errorf("%s does not say what was left out", quote(text))
	}
	c.Pointer, c.Omitted = true, text
	return nil
}

// normal returns the copy as it travels: texts printable and short enough, times
// to the millisecond, the delay in whole milliseconds.
func (c Copy) normal() Copy {
	c.Reason, c.Class = plainText(c.Reason, maxWord), plainText(c.Class, maxWord)
	c.Error = plainText(c.Error, MaxErrorText)
	c.Delay = wholeMillis(c.Delay)
	c.FirstSeen, c.Origin.Timestamp = cutToMillis(c.FirstSeen), cutToMillis(c.Origin.Timestamp)
	switch {
	case !c.Pointer:
		c.Omitted = ""
	case c.Omitted == "":
		c.Omitted = omissions[omitValue]
	}
	return c
}

// check refuses a copy that [Decode] would not read back, and returns how much a
// pointer leaves out already.
func (c Copy) check() (level int, err error) {
	switch {
	case c.Namespace == "" || !isPrintable(c.Namespace):
		return 0, fmt.Errorf("namespace %s is empty or not printable ASCII", quote(c.Namespace))
	case !isPrintable(c.KeyText):
		return 0, errors.New("the key text is not canonical: it is not printable ASCII")
	}
	for _, f := range []string{c.Fingerprint, c.OtherFingerprint} {
		if f != "" {
			if err := checkFingerprint(f); err != nil {
				return 0, err
			}
		}
	}
	if level = slices.Index(omissions, c.Omitted); level < 0 {
		return 0, fmt.Errorf("Copy.Omitted: %s does not say what was left out", quote(c.Omitted))
	}
	return level, nil
}

// cutToMillis returns a time as it travels: in UTC, without what is less than a
// millisecond.
func cutToMillis(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMilli(t.UnixMilli()).UTC()
}
