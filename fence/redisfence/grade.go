package redisfence

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncefence/oncefence/fence/driver"
)

// Grade implements driver.Store. It reads INFO and TIME, and CONFIG where the
// server allows it; in a cluster it asks every master and answers the worst.
//
// Snapshots alone are volatile: the last answers are not in them. An
// append-only file survives the process; with appendfsync always it survives
// the machine. Redis answers before its replicas have the write, so replicas
// raise the level only with Options.WaitReplicas, and only of a server that
// keeps a file: one that starts empty empties its replicas. A server that
// cannot run the fence's scripts, or is a replica, is an error.
func (s *Store) Grade(ctx context.Context) (driver.Grade, error) {
	if s.closed.Load() {
		return driver.Grade{}, driver.ErrClosed
	}
	var mu sync.Mutex
	var all []driver.Grade
	err := s.eachMaster(ctx, func(ctx context.Context, master redis.Cmdable) error {
		g, err := gradeOf(ctx, master)
		if err != nil {
			return err
		}
		if s.replicas > 0 && g.Level >= driver.GradeRestart {
			g.Level, g.Detail = driver.GradeReplicated, fmt.Sprintf("confirmed by %d replicas; %s", s.replicas, g.Detail)
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, g)
		return nil
	})
	if err != nil {
		return driver.Grade{}, err
	}
	return worst(all)
}

// worst is the grade of a cluster.
func worst(all []driver.Grade) (driver.Grade, error) {
	if len(all) == 0 {
		return driver.Grade{}, errors.New("the cluster has no master")
	}
	g := all[0]
	for _, other := range all[1:] {
		if other.Level < g.Level {
			g.Level, g.Detail = other.Level, other.Detail
		}
		if g.Eviction == "noeviction" || g.Eviction == "" {
			g.Eviction = other.Eviction
		}
		if other.Skew.Abs() > g.Skew.Abs() {
			g.Skew = other.Skew
		}
	}
	if len(all) > 1 {
		g.Detail = fmt.Sprintf("the weakest of %d masters: %s", len(all), g.Detail)
	}
	return g, nil
}

func gradeOf(ctx context.Context, server redis.Cmdable) (g driver.Grade, err error) {
	text, err := server.Info(ctx).Result()
	if err != nil {
		return g, fmt.Errorf("read INFO: %w", err)
	}
	info := parseInfo(text)
	if err := checkServer(info); err != nil {
		return g, err
	}
	fsync, fsyncKnown := setting(ctx, server, "appendfsync")
	policy := info["maxmemory_policy"]
	if policy == "" {
		policy, _ = setting(ctx, server, "maxmemory-policy")
	}
	before := time.Now()
	clock, err := server.Time(ctx).Result()
	if err != nil {
		return g, fmt.Errorf("read TIME: %w", err)
	}
	after := time.Now()
	g.Skew = clock.Sub(before.Add(after.Sub(before) / 2))
	g.Eviction = policy
	g.Level, g.Detail = persistence(info, fsync, fsyncKnown)
	g.Detail = fmt.Sprintf("%s %s; %s; %s replicas connected, maxmemory-policy %s",
		serverName(info), info["redis_version"], g.Detail, orUnknown(info["connected_slaves"]), orUnknown(policy))
	return g, nil
}

// persistence says what a crash leaves.
func persistence(info map[string]string, fsync string, fsyncKnown bool) (driver.Level, string) {
	switch aof := info["aof_enabled"]; {
	case aof == "":
		return driver.GradeUnknown, "INFO does not tell whether there is an append-only file"
	case aof != "1":
		return driver.GradeVolatile, "no append-only file: a restart forgets what came after the last snapshot (set appendonly yes)"
	case info["aof_last_write_status"] == "err":
		return driver.GradeVolatile, "the append-only file cannot be written at the moment"
	case !fsyncKnown:
		return driver.GradeRestart, "append-only file, appendfsync unknown (CONFIG is refused)"
	case fsync == "always":
		return driver.GradeMachine, "append-only file, appendfsync always"
	default:
		return driver.GradeRestart, "append-only file, appendfsync " + fsync
	}
}

// checkServer refuses what the scripts need and the server is not.
func checkServer(info map[string]string) error {
	if info["role"] == "slave" {
		return errors.New("connected to a replica: it refuses writes and is behind; connect to the master")
	}
	if bits := info["arch_bits"]; bits != "" && bits != "64" {
		return fmt.Errorf("the server is built for %s bits, where scripts cannot count microseconds: 64 are needed", bits)
	}
	version := info["redis_version"]
	major, err := strconv.Atoi(strings.SplitN(version, ".", 2)[0])
	if err == nil && major < 7 {
		return fmt.Errorf("the server is Redis %s: 7.0 or later is needed (Valkey 7.2 or later)", version)
	}
	return nil
}

func serverName(info map[string]string) string {
	if name := info["server_name"]; name != "" {
		return name
	}
	return "redis"
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// setting asks for one setting; managed services refuse CONFIG.
func setting(ctx context.Context, server redis.Cmdable, name string) (value string, known bool) {
	got, err := server.ConfigGet(ctx, name).Result()
	if err != nil {
		return "", false
	}
	value, known = got[name]
	return value, known
}

// parseInfo reads the lines name:value of INFO.
func parseInfo(text string) map[string]string {
	info := make(map[string]string, 256)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}
