package deps

import (
	"strings"
	"testing"
)

// The check itself finds what it should, in a module that breaks each rule once.
func TestCheckFinds(t *testing.T) {
	const redis = "github.com/redis/go-redis/v9"
	packages := map[string]pkg{}
	for folder, imports := range map[string][3][]string{
		"fence/driver":     {{"time"}, nil, nil},
		"fence":            {{"context", own("fence/driver")}, nil, {own("fence"), own("fence/memfence")}},
		"fence/memfence":   {{own("fence")}, nil, nil},
		"fence/redisfence": {{own("fence"), redis, redis + "/internal"}, nil, {redis}},
		"fence/boltfence":  {{own("fence")}, nil, {own("fence/redisfence")}},
		"effect":           {{own("consumer")}, nil, nil},
		"consumer":         {{own("fence"), "github.com/twmb/franz-go/pkg/kgo"}, {redis}, {own("test/servers")}},
		"test/servers":     {{redis}, nil, nil},
		"cmd/oncefence":    {{redis, own("consumer")}, nil, nil},
		"consumer/common":  {nil, nil, nil},
		"metrics":          {{"github.com/redis/go-redis/v9extra"}, nil, nil},
	} {
		packages[folder] = pkg{own(folder), imports[0], imports[1], imports[2]}
	}
	want := []string{
		"a test of consumer imports " + own("test/servers") + ": ",
		"a test of consumer imports " + redis + ": ",
		"a test of fence/boltfence imports " + own("fence/redisfence") + ": ",
		"consumer imports github.com/twmb/franz-go/pkg/kgo: " + whyChain,
		"consumer/common: no rule",
		"effect imports " + own("consumer") + ": " + whyChain,
		"metrics imports github.com/redis/go-redis/v9extra: " + whyMetrics,
	}
	got := check(packages)
	for _, violation := range got {
		if len(want) > 0 && strings.HasPrefix(violation, want[0]) {
			want = want[1:]
			continue
		}
		t.Errorf("unexpected: %s", violation)
	}
	for _, missed := range want {
		t.Errorf("not found: %s", missed)
	}
}

func own(folder string) string { return module + "/" + folder }

// No package bears a name that says nothing about what it holds.
func TestPackageNames(t *testing.T) {
	for folder := range list(t, "") {
		switch name := folder[strings.LastIndex(folder, "/")+1:]; name {
		case "common", "util", "utils", "types", "models":
			t.Errorf("%s: name a package by what it holds, not %s", folder, name)
		}
	}
}
