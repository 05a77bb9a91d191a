package fencetest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

func noWait(context.Context, time.Duration) error { return nil }

func TestHistoryOfASeed(t *testing.T) {
	a, b := RandomHistory(3, 50), RandomHistory(3, 50)
	if a.String() != b.String() {
		t.Error("one seed gave two histories")
	}
	if a.String() == RandomHistory(4, 50).String() {
		t.Error("two seeds gave one history")
	}
	if n := strings.Count(a.String(), "\n"); n != 50 {
		t.Errorf("50 moves are written in %d lines", n)
	}
}

func TestPlayReportsWhatSendingAgainCannotMend(t *testing.T) {
	stage := Stage{Store: Faulty(bend{}.open(), quiet(func(o *FaultyOptions) { o.LoseReply = 1 })), Namespace: "ns", Pass: noWait, Resend: 3}
	if _, err := Play(t.Context(), stage, RandomHistory(1, 10)); err == nil {
		t.Error("a store that never answers was played to the end")
	}
}

func TestPlayReportsATokenThatDoesNotGrow(t *testing.T) {
	stage := Stage{Store: bend{token: shrinking()}.open(), Namespace: "ns", Pass: noWait}
	h := History{
		{Verb: MoveClaim, Items: []Item{{Attempt: 1}}},
		{Verb: MoveApply, Items: []Item{{Op: driver.HandOver}}},
		{Verb: MoveClaim, Items: []Item{{Attempt: 2}}},
	}
	if _, err := Play(t.Context(), stage, h); err == nil || !strings.Contains(err.Error(), "token") {
		t.Errorf("error %v", err)
	}
}

func TestCompare(t *testing.T) {
	base := []Line{{What: "w", Answer: "ok", Record: "r"}}
	for name, c := range map[string]struct {
		other []Line
		same  bool
	}{
		"the same":              {[]Line{{What: "w", Answer: "ok", Record: "r"}}, true},
		"repeated after resend": {[]Line{{What: "w", Answer: "repeated", Resent: true}}, true},
		"repeated":              {[]Line{{What: "w", Answer: "repeated", Record: "r"}}, false},
		"refused after resend":  {[]Line{{What: "w", Answer: "refused", Record: "r", Resent: true}}, false},
		"another record":        {[]Line{{What: "w", Answer: "ok", Record: "s"}}, false},
		"another line":          {[]Line{{What: "v", Answer: "ok", Record: "r"}}, false},
		"a line less":           {nil, false},
	} {
		if err := Compare(base, c.other); (err == nil) != c.same {
			t.Errorf("%s: %v", name, err)
		}
	}
}
