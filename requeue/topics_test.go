package requeue

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func mustTopics(t *testing.T, names Names, s Schedule, sources ...string) *Topics {
	t.Helper()
	topics, err := NewTopics(sources, names, s)
	if err != nil {
		t.Fatal(err)
	}
	return topics
}

func TestDefaultNames(t *testing.T) {
	topics := mustTopics(t, Names{Group: "bill/ing ö"}, Schedule{Delays: []time.Duration{500 * time.Millisecond, time.Second, 90 * time.Second}}, "orders", "refunds")
	want := []string{
		"orders.bill_2Fing_20_C3_B6.retry.500ms", "orders.bill_2Fing_20_C3_B6.retry.1s", "orders.bill_2Fing_20_C3_B6.retry.90s",
		"refunds.bill_2Fing_20_C3_B6.retry.500ms", "refunds.bill_2Fing_20_C3_B6.retry.1s", "refunds.bill_2Fing_20_C3_B6.retry.90s",
	}
	if got := topics.Subscriptions(); !slices.Equal(got, want) {
		t.Errorf("subscriptions\n%q, want\n%q", got, want)
	}
	if got := topics.DeadLetter("orders"); got != "orders.bill_2Fing_20_C3_B6.dlq" {
		t.Errorf("dead letters go to %q", got)
	}
	if got := topics.Sources(); !slices.Equal(got, []string{"orders", "refunds"}) {
		t.Errorf("sources %q", got)
	}
}

func TestLookup(t *testing.T) {
	topics := mustTopics(t, Names{Group: "g"}, Schedule{}, "orders")
	for _, want := range []Place{
		{Topic: "orders", Source: "orders", Kind: SourceTopic},
		{Topic: "orders.g.retry.5s", Source: "orders", Kind: RetryTopic, Delay: 5 * time.Second, Longest: 5500 * time.Millisecond},
		{Topic: "orders.g.dlq", Source: "orders", Kind: DeadLetterTopic},
	} {
		if got, ok := topics.Lookup(want.Topic); !ok || got != want {
			t.Errorf("Lookup(%q) = %+v, %v, want %+v", want.Topic, got, ok, want)
		}
	}
	if got, ok := topics.Lookup("orders.other.retry.5s"); ok {
		t.Errorf("another group's topic is %+v to this group", got)
	}
}

func TestRetryTopicForADelay(t *testing.T) {
	topics := mustTopics(t, Names{Group: "g"}, Schedule{}, "orders")
	for delay, want := range map[time.Duration]string{
		0:                       "1s", // the shortest there is
		899 * time.Millisecond:  "1s",
		900 * time.Millisecond:  "1s",
		1100 * time.Millisecond: "1s",
		4499 * time.Millisecond: "1s", // 5s would keep it too long
		4500 * time.Millisecond: "5s", // 5s with the most jitter downwards
		26 * time.Second:        "5s",
		27 * time.Second:        "30s",
		time.Hour:               "30s",
	} {
		if got := topics.RetryTopic("orders", delay); got != "orders.g.retry."+want {
			t.Errorf("a delay of %v waits in %q, want the %s topic", delay, got, want)
		}
	}
	if got := topics.Shortest("orders"); got != "orders.g.retry.1s" {
		t.Errorf("shortest is %q", got)
	}
	if topics.RetryTopic("other", time.Second) != "" || topics.Shortest("other") != "" || topics.DeadLetter("other") != "" {
		t.Error("a topic that is no source topic has topics of its own")
	}
	none := mustTopics(t, Names{Group: "g"}, Schedule{Delays: []time.Duration{}}, "orders")
	if none.RetryTopic("orders", time.Second) != "" || len(none.Subscriptions()) != 0 {
		t.Error("a schedule without retries has retry topics")
	}
}

// A copy with the schedule's own delay waits in one topic and never hops,
// whatever the delays and the jitter are.
func TestScheduledDelaysDoNotHop(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		s := Schedule{Jitter: rng.Float64()/2 - 0.05}
		for range 1 + rng.IntN(6) {
			s.Delays = append(s.Delays, time.Duration(1+rng.IntN(200_000))*time.Millisecond)
		}
		slices.Sort(s.Delays)
		topics := mustTopics(t, Names{Group: "g"}, s, "orders")
		for step := range s.Delays {
			c := Copy{Delay: s.Delay(step, 0, rng.Float64)}
			place, _ := topics.Lookup(topics.RetryTopic("orders", c.Delay))
			if left, hop := Hop(place, c); hop {
				t.Fatalf("schedule %+v, step %d: a delay of %v waits in %s and then hops on for %v", s, step, c.Delay, place.Topic, left)
			}
		}
	}
}

// A long delay ends after hops that add up to it exactly.
func TestLongDelaysHopToTheirEnd(t *testing.T) {
	topics := mustTopics(t, Names{Group: "g"}, Schedule{}, "orders")
	for _, delay := range []time.Duration{3 * time.Second, time.Minute, 61*time.Second + time.Millisecond, time.Hour, MaxDelay} {
		c, waited := Copy{Delay: delay}, time.Duration(0)
		for hops := 0; ; hops++ {
			place, _ := topics.Lookup(topics.RetryTopic("orders", c.Delay))
			waited += place.wait(c.Delay)
			left, hop := Hop(place, c)
			if !hop {
				break
			}
			if left >= c.Delay || hops > 5000 {
				t.Fatalf("a delay of %v does not come to an end: %v left after %d hops", delay, left, hops)
			}
			c.Delay = left
		}
		if waited != delay {
			t.Errorf("a delay of %v waited %v in all", delay, waited)
		}
	}
}

func TestRetiredDelaysAreReadButNotUsed(t *testing.T) {
	s := Schedule{Delays: []time.Duration{2 * time.Second, 10 * time.Second}, Retired: []time.Duration{5 * time.Second, 2 * time.Second, time.Second}}
	topics := mustTopics(t, Names{Group: "g"}, s, "orders")
	want := []string{"orders.g.retry.2s", "orders.g.retry.10s", "orders.g.retry.1s", "orders.g.retry.5s"}
	if got := topics.Subscriptions(); !slices.Equal(got, want) {
		t.Errorf("subscriptions %q, want %q", got, want)
	}
	if got := topics.RetryTopic("orders", 6*time.Second); got != "orders.g.retry.2s" {
		t.Errorf("6s goes to %q", got)
	}
	if got := len(topics.Specs(0)); got != 5 {
		t.Errorf("%d specs, want 4 retry topics and the dead letters", got)
	}
}

func TestNamesAreChecked(t *testing.T) {
	same := func(string, string) string { return "all.dlq" }
	for _, c := range []struct {
		name    string
		sources []string
		names   Names
		want    string
	}{
		{"no group", []string{"orders"}, Names{}, "no group"},
		{"empty topic", []string{""}, Names{Group: "g"}, "empty source topic"},
		{"too long", []string{strings.Repeat("t", 200)}, Names{Group: strings.Repeat("g", 50)}, "bytes long, brokers take 249"},
		{"one dead-letter topic for two", []string{"a", "b"}, Names{Group: "g", DeadLetter: same}, "clashes with all.dlq"},
		{"dead letters into the source", []string{"all.dlq"}, Names{Group: "g", DeadLetter: same}, "clashes with all.dlq"},
		{"retry into another source", []string{"a", "b"}, Names{Group: "g", Retry: func(string, string, time.Duration) string { return "b" }}, "clashes with b"},
		{"dot and underscore are one", []string{"a.b", "a_b"}, Names{Group: "g"}, "clashes with"},
		{"illegal name", []string{"a"}, Names{Group: "g", DeadLetter: func(string, string) string { return "a b" }}, "byte 1 (0x20)"},
		{"no name", []string{"a"}, Names{Group: "g", DeadLetter: func(string, string) string { return "" }}, `"" is not a topic name`},
		{"own dead letters as source", []string{"orders.g.dlq"}, Names{Group: "g"}, "holds the dead letters of group g"},
		{"own retry topic as source", []string{"orders", "orders.g.retry.1s"}, Names{Group: "g"}, "is a retry topic of group g itself"},
		{"other group's dead letters", []string{"orders.h.dlq"}, Names{Group: "g"}, ""},
		{"named next stage", []string{"orders.g.dlq"}, Names{Group: "g", DeadLetter: func(t, _ string) string { return t + ".second" }}, ""},
		{"a topic twice", []string{"orders", "orders"}, Names{Group: "g"}, ""},
		{"looks like a retry topic", []string{"orders.g.retry.soon"}, Names{Group: "g"}, ""},
	} {
		_, err := NewTopics(c.sources, c.names, Schedule{})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := NewTopics([]string{"a"}, Names{Group: "g"}, Schedule{Jitter: 1}); err == nil {
		t.Error("a schedule that does not hold was taken")
	}
}

func TestSpecs(t *testing.T) {
	day := 24 * time.Hour
	topics := mustTopics(t, Names{Group: "g"}, Schedule{Delays: []time.Duration{time.Second, 10 * time.Hour}}, "orders")
	for redelivery, want := range map[time.Duration]time.Duration{
		3 * day:   3 * day,
		0:         7 * day,
		-1:        7 * day,
		time.Hour: time.Hour + 2*(11*time.Hour+1100*time.Millisecond), // twice the budget with jitter, and an hour
	} {
		specs := topics.Specs(redelivery)
		if len(specs) != 3 {
			t.Fatalf("%d specs, want 3", len(specs))
		}
		for _, spec := range specs {
			want, stamped := want, true
			if spec.Topic == "orders.g.dlq" {
				want, stamped = 2*want, false
			}
			if spec.Like != "orders" || spec.AppendTime != stamped || spec.Retention != want {
				t.Errorf("redelivery %v: %+v, want retention %v, append time %v", redelivery, spec, want, stamped)
			}
		}
	}
}
