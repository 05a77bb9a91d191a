package fenceurl

import (
	"net/url"
	"strings"
)

// Redact returns the URL as it may be printed and logged: without password,
// and without query values that may be one. What it cannot read for sure, it
// leaves out.
func Redact(raw string) string {
	scheme, _, hasScheme := strings.Cut(raw, ":")
	if hasScheme && (scheme == "mem" || scheme == "bolt") {
		return raw
	}
	u, err := url.Parse(raw)
	if err != nil || strings.Contains(u.Opaque+u.Path+u.Fragment, "@") {
		// An @ there is the end of a password that should have been escaped.
		if hasScheme && !strings.ContainsAny(scheme, "@/?# ") {
			return scheme + ":(unreadable)"
		}
		return "(unreadable)"
	}
	if _, hasPassword := u.User.Password(); hasPassword {
		u.User = url.User(u.User.Username())
	}
	query := u.Query()
	for name := range query {
		if low := strings.ToLower(name); strings.Contains(low, "pass") || strings.Contains(low, "secret") || strings.Contains(low, "token") {
			query.Del(name)
		}
	}
	if u.RawQuery != "" {
		u.RawQuery = query.Encode()
	}
	text := u.String()
	return strings.Replace(text, "://@", "://", 1)
}
