package redisfence

import (
	"strings"
	"testing"
	"time"

	"github.com/oncefence/oncefence/fence/driver"
)

func TestPersistence(t *testing.T) {
	for _, c := range []struct {
		name  string
		info  map[string]string
		fsync string // "" is refused
		want  driver.Level
	}{
		{"nothing told", nil, "", driver.GradeUnknown},
		{"snapshots", map[string]string{"aof_enabled": "0"}, "everysec", driver.GradeVolatile},
		{"append-only file", map[string]string{"aof_enabled": "1"}, "everysec", driver.GradeRestart},
		{"left to the system", map[string]string{"aof_enabled": "1"}, "no", driver.GradeRestart},
		{"always", map[string]string{"aof_enabled": "1"}, "always", driver.GradeMachine},
		{"CONFIG refused", map[string]string{"aof_enabled": "1"}, "", driver.GradeRestart},
		{"disk full", map[string]string{"aof_enabled": "1", "aof_last_write_status": "err"}, "always", driver.GradeVolatile},
	} {
		if got, detail := persistence(c.info, c.fsync, c.fsync != ""); got != c.want || detail == "" {
			t.Errorf("%s: %v (%s), want %v", c.name, got, detail, c.want)
		}
	}
}

func TestCheckServer(t *testing.T) {
	for _, c := range []struct {
		info map[string]string
		want string // "" passes
	}{
		{map[string]string{"redis_version": "7.0.0", "role": "master", "arch_bits": "64"}, ""},
		{map[string]string{"redis_version": "7.2.4", "server_name": "valkey", "role": "master"}, ""},
		{map[string]string{"redis_version": "255.255.255"}, ""},
		{map[string]string{}, ""},
		{map[string]string{"redis_version": "6.2.14"}, "7.0 or later"},
		{map[string]string{"redis_version": "7.0.0", "arch_bits": "32"}, "64 are needed"},
		{map[string]string{"redis_version": "7.0.0", "role": "slave"}, "replica"},
	} {
		err := checkServer(c.info)
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.info, err, c.want)
		}
	}
}

func TestWorstMaster(t *testing.T) {
	g, err := worst([]driver.Grade{
		{Level: driver.GradeMachine, Detail: "a", Eviction: "noeviction", Skew: time.Second},
		{Level: driver.GradeVolatile, Detail: "b", Eviction: "allkeys-lru", Skew: -time.Minute},
		{Level: driver.GradeRestart, Detail: "c", Eviction: "noeviction"},
	})
	want := driver.Grade{Level: driver.GradeVolatile, Detail: "the weakest of 3 masters: b", Eviction: "allkeys-lru", Skew: -time.Minute}
	if err != nil || g != want {
		t.Errorf("got %+v, %v, want %+v", g, err, want)
	}
	if _, err := worst(nil); err == nil {
		t.Error("a cluster without masters has a grade")
	}
}

func TestParseInfo(t *testing.T) {
	info := parseInfo("# Server\r\nredis_version:7.0.15\r\nos:Linux 6.1: x\r\n\r\n# Memory\r\nmaxmemory_policy:noeviction\r\n")
	if len(info) != 3 || info["redis_version"] != "7.0.15" || info["os"] != "Linux 6.1: x" || info["maxmemory_policy"] != "noeviction" {
		t.Errorf("parsed %v", info)
	}
}
