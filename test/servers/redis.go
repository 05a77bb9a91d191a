package servers

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// RedisOptions says what kind of Redis is wanted. nil means all defaults.
type RedisOptions struct {
	// From restricts the search to one origin. Default: all, in order.
	From Origin
	// Own asks for a server that nobody else uses: REDIS_URL is passed over.
	// Args implies it.
	Own bool
	// Args are added to the command line of redis-server and win over the
	// defaults, which are an append-only file synced every second, no
	// snapshots and noeviction.
	Args []string
}

// redisDefaults are the settings of every Redis that is started here.
func redisDefaults() []string {
	return []string{"--appendonly", "yes", "--appendfsync", "everysec", "--save", "", "--maxmemory-policy", "noeviction"}
}

// RedisServer is a Redis that answers.
type RedisServer struct {
	origin Origin
	url    string
	addr   string
	stop   func() error
}

// Addr returns host:port.
func (s *RedisServer) Addr() string { return s.addr }

// URL returns the address as redis.ParseURL takes it.
func (s *RedisServer) URL() string { return s.url }

// Origin says where the server came from.
func (s *RedisServer) Origin() Origin { return s.origin }

// Close stops a server that was started here and removes its files; one that
// was found by address stays.
func (s *RedisServer) Close() error { return s.stop() }

func (s *RedisServer) where() string { return s.addr }

// StartRedis finds or starts a Redis and returns when it answers. The context
// bounds the start only. The error is [ErrMissing] when there is none to be had.
func StartRedis(ctx context.Context, opts *RedisOptions) (*RedisServer, error) {
	o := RedisOptions{}
	if opts != nil {
		o = *opts
	}
	return find(
		ctx, "redis", o.From,
		way[*RedisServer]{Address, func(ctx context.Context) (*RedisServer, error) { return redisAddress(ctx, o) }},
		way[*RedisServer]{Docker, func(ctx context.Context) (*RedisServer, error) { return redisDocker(ctx, o) }},
		way[*RedisServer]{Program, func(ctx context.Context) (*RedisServer, error) { return redisProgram(ctx, o) }},
	)
}

func redisAddress(ctx context.Context, o RedisOptions) (*RedisServer, error) {
	raw := os.Getenv("REDIS_URL")
	if raw == "" {
		return nil, absent("REDIS_URL is not set")
	}
	if o.Own || len(o.Args) > 0 {
		return nil, absent("REDIS_URL is shared and a server of one's own was asked for")
	}
	parsed, err := redis.ParseURL(raw)
	if err != nil {
		return nil, fmt.Errorf("REDIS_URL: %w", err)
	}
	s := &RedisServer{origin: Address, url: raw, addr: parsed.Addr, stop: leave}
	return s, answers(ctx, s, pingRedis)
}

func redisProgram(ctx context.Context, o RedisOptions) (*RedisServer, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, absent("redis-server is not in PATH (apt-get install redis-server)")
	}
	start := func(context.Context) (*RedisServer, *programs, error) {
		ports, err := freePorts(1)
		if err != nil {
			return nil, nil, err
		}
		dir, err := workdir("redis")
		if err != nil {
			return nil, nil, err
		}
		g := &programs{dir: dir, stop: syscall.SIGKILL}
		argv := append([]string{path, "--bind", "127.0.0.1", "--port", strconv.Itoa(ports[0]), "--dir", dir}, redisDefaults()...)
		p, err := startProcess(command{argv: append(argv, o.Args...), dir: dir, log: filepath.Join(dir, "log")})
		if err != nil {
			return nil, g, err
		}
		g.all = append(g.all, p)
		return newRedis(Program, loopback(ports[0]), g.close), g, nil
	}
	return startPrograms(ctx, start, pingRedis)
}

func newRedis(from Origin, addr string, stop func() error) *RedisServer {
	u := url.URL{Scheme: "redis", Host: addr, Path: "/0"}
	return &RedisServer{origin: from, url: u.String(), addr: addr, stop: stop}
}

func pingRedis(ctx context.Context, s *RedisServer) error {
	// A dial of our own first: go-redis logs the refusals that are normal here.
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return err
	}
	conn.Close()
	opt, err := redis.ParseURL(s.url)
	if err != nil {
		return err
	}
	opt.MaxRetries = -1
	client := redis.NewClient(opt)
	defer client.Close()
	return client.Ping(ctx).Err()
}
