package servers

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"

	"github.com/jackc/pgx/v5"
)

// PostgresOptions says what kind of PostgreSQL is wanted. nil means all
// defaults.
type PostgresOptions struct {
	// From restricts the search to one origin. Default: all, in order.
	From Origin
	// Own asks for a server that nobody else uses: POSTGRES_URL is passed over.
	// NoFsync and Settings imply it.
	Own bool
	// NoFsync starts the server with fsync off: faster, and it may lose what it
	// confirmed when the machine dies. Default: fsync on.
	NoFsync bool
	// Settings are added as -c name=value.
	Settings map[string]string
}

func (o PostgresOptions) own() bool { return o.Own || o.NoFsync || len(o.Settings) > 0 }

// args are the settings as postgres takes them.
func (o PostgresOptions) args() []string {
	var args []string
	if o.NoFsync {
		args = append(args, "-c", "fsync=off")
	}
	for name, value := range o.Settings {
		args = append(args, "-c", name+"="+value)
	}
	return args
}

// PostgresServer is a PostgreSQL that answers.
type PostgresServer struct {
	origin Origin
	url    string
	addr   string
	stop   func() error
}

// URL returns the address with user, password and database, as pgx takes it.
// The user of a server that was started here is a superuser.
func (s *PostgresServer) URL() string { return s.url }

// Origin says where the server came from.
func (s *PostgresServer) Origin() Origin { return s.origin }

// Close stops a server that was started here and removes its files; one that
// was found by address stays.
func (s *PostgresServer) Close() error { return s.stop() }

func (s *PostgresServer) where() string { return s.addr }

// StartPostgres finds or starts a PostgreSQL and returns when it answers. The
// context bounds the start only. The error is [ErrMissing] when there is none
// to be had.
func StartPostgres(ctx context.Context, opts *PostgresOptions) (*PostgresServer, error) {
	o := PostgresOptions{}
	if opts != nil {
		o = *opts
	}
	return find(
		ctx, "postgres", o.From,
		way[*PostgresServer]{Address, func(ctx context.Context) (*PostgresServer, error) { return postgresAddress(ctx, o) }},
		way[*PostgresServer]{Docker, func(ctx context.Context) (*PostgresServer, error) { return postgresDocker(ctx, o) }},
		way[*PostgresServer]{Program, func(ctx context.Context) (*PostgresServer, error) { return postgresProgram(ctx, o) }},
	)
}

func postgresAddress(ctx context.Context, o PostgresOptions) (*PostgresServer, error) {
	raw := os.Getenv("POSTGRES_URL")
	if raw == "" {
		return nil, absent("POSTGRES_URL is not set")
	}
	if o.own() {
		return nil, absent("POSTGRES_URL is shared and a server of one's own was asked for")
	}
	config, err := pgx.ParseConfig(raw)
	if err != nil {
		return nil, fmt.Errorf("POSTGRES_URL: %w", err)
	}
	addr := net.JoinHostPort(config.Host, fmt.Sprint(config.Port))
	s := &PostgresServer{origin: Address, url: raw, addr: addr, stop: leave}
	return s, answers(ctx, s, pingPostgres)
}

const (
	postgresUser     = "postgres"
	postgresPassword = "oncefence"
	postgresDatabase = "postgres"
)

func newPostgres(from Origin, addr string, stop func() error) *PostgresServer {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(postgresUser, postgresPassword),
		Host: addr, Path: "/" + postgresDatabase, RawQuery: "sslmode=disable",
	}
	return &PostgresServer{origin: from, url: u.String(), addr: addr, stop: stop}
}

func pingPostgres(ctx context.Context, s *PostgresServer) error {
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return conn.Ping(ctx)
}
