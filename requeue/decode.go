package requeue

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/oncefence/oncefence/consumer/driver"
)

// Decode reads what [Encode] wrote, from a record of one of the group's own
// retry or dead-letter topics; elsewhere such headers prove nothing, see
// [Topics.Lookup]. It returns the copy and the user's headers as they stood in
// the original, for the effect: in order, doubles included, names restored. The
// headers share the record's values.
//
// It is strict: a library header that is missing, doubled, unknown, nil, or not
// written as Encode writes it is an error that names record and header. An error
// that matches [ErrVersion] means that another release wrote the copy.
func Decode(rec driver.Record) (Copy, []driver.Header, error) {
	c, user, err := decode(rec.Headers)
	if err != nil {
		return Copy{}, nil, fmt.Errorf("copy at topic %s, partition %d, offset %d: %w", rec.Topic, rec.Partition, rec.Offset, err)
	}
	return c, user, nil
}

func decode(headers []driver.Header) (Copy, []driver.Header, error) {
	ours := make(map[string]string, len(copyFields)+1)
	var user []driver.Header
	for _, h := range headers {
		if !looksOurs(h.Key) {
			h.Key = showUser(h.Key)
			user = append(user, h)
			continue
		}
		if _, twice := ours[h.Key]; twice {
			return Copy{}, nil, fmt.Errorf("header %s stands there twice", h.Key)
		}
		if len(h.Value) == 0 {
			return Copy{}, nil, fmt.Errorf("header %s is empty", quote(h.Key))
		}
		ours[h.Key] = string(h.Value)
	}
	if err := checkVersion(ours); err != nil {
		return Copy{}, nil, err
	}
	var c Copy
	for _, f := range copyFields {
		text, there := ours[f.header]
		if !there {
			if f.required {
				return Copy{}, nil, fmt.Errorf("header %s is missing", f.header)
			}
			continue
		}
		if err := f.read(&c, text); err != nil {
			return Copy{}, nil, fmt.Errorf("header %s: %w", f.header, err)
		}
		delete(ours, f.header)
	}
	for name := range ours {
		return Copy{}, nil, fmt.Errorf("header %s is unknown to format version %d", quote(name), Version)
	}
	return c, user, nil
}

// checkVersion takes the version out of the headers.
func checkVersion(ours map[string]string) error {
	text, there := ours[headerVersion]
	if !there {
		return errors.New("header " + headerVersion + " is missing: this was not written by a release of this library")
	}
	delete(ours, headerVersion)
	version, err := parseNumber(text)
	if err != nil {
		return fmt.Errorf("header %s: %w", headerVersion, err)
	}
	if version != Version {
		return fmt.Errorf("header %s: %w: %s, this release reads %s: bring all members of the group to the newest release",
			headerVersion, ErrVersion, strconv.FormatUint(uint64(version), 10), strconv.Itoa(Version))
	}
	return nil
}
