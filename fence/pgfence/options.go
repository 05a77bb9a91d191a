package pgfence

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncefence/oncefence/fence"
)

// DefaultSchema is the schema that holds the fence's tables.
const DefaultSchema = "oncefence"

// maxSchema is the longest name that PostgreSQL keeps whole.
const maxSchema = 63

// Options of a Store. The zero value and nil mean the defaults.
type Options struct {
	// Schema holds the fence's tables; "" is DefaultSchema. Two fences in one
	// database need two schemas. More than 63 bytes and control characters are
	// refused.
	Schema string
	// NoMigrate never changes the database's structure: with a schema that is
	// missing or older every call fails with the statements that its owner has to
	// run, see SchemaSQL. Else the first call makes or upgrades it, which needs
	// the right to create in the database or, if the schema is there, in it.
	NoMigrate bool
	// Fence holds the options of the fence that New and NewSQL return. NewStore
	// and NewSQLStore do not look at it.
	Fence *fence.Options
}

// New opens a fence on PostgreSQL. It does not contact the server; opening a
// namespace does. It refuses what NewStore and fence.New refuse.
//
// Effects of effect.Transactional over this fence are given a pgx.Tx.
func New(pool *pgxpool.Pool, opts *Options) (*fence.Fence, error) {
	store, err := NewStore(pool, opts)
	if err != nil {
		return nil, err
	}
	return wrap(store, opts)
}

// NewSQL is New for a program that uses database/sql. The driver must be pgx's
// (sql.Open("pgx", url) with github.com/jackc/pgx/v5/stdlib).
//
// Effects of effect.Transactional over this fence are given a *sql.Tx.
func NewSQL(db *sql.DB, opts *Options) (*fence.Fence, error) {
	store, err := NewSQLStore(db, opts)
	if err != nil {
		return nil, err
	}
	return wrap(store, opts)
}

func wrap(store *Store, opts *Options) (*fence.Fence, error) {
	var fenceOpts *fence.Options
	if opts != nil {
		fenceOpts = opts.Fence
	}
	f, err := fence.New(store, fenceOpts)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return f, nil
}

// NewStore makes a store on the user's pool, which stays open when the store is
// closed. It does not contact the server.
//
// A request takes one connection for as long as it lasts, a transactional effect
// for as long as it runs. One connection of the pool is kept for everything else
// (renewals, hand-overs, dead letters), so at most MaxConns - 1 transactions of
// effects run at once, and further ones wait.
//
// Refused by name, because the promise would not hold:
//   - a pool whose sessions are read-only (default_transaction_read_only).
//   - a replica: its answers are behind. The first call says so.
func NewStore(pool *pgxpool.Pool, opts *Options) (*Store, error) {
	if pool == nil {
		return nil, errors.New("pgfence: the pool is nil")
	}
	config := pool.Config()
	if on := config.ConnConfig.RuntimeParams["default_transaction_read_only"]; on == "on" || on == "true" || on == "1" {
		return nil, errors.New("pgfence: the pool sets default_transaction_read_only: a fence writes; leave that parameter out")
	}
	return newStore(&poolLinks{pool: pool}, int(config.MaxConns), opts)
}

// NewSQLStore is NewStore for a *sql.DB over pgx. It stays open when the store
// is closed. Another driver is refused by name. db.SetMaxOpenConns(1) leaves no
// connection beside a running effect: what has to be written waits for its end.
func NewSQLStore(db *sql.DB, opts *Options) (*Store, error) {
	if db == nil {
		return nil, errors.New("pgfence: the *sql.DB is nil")
	}
	if err := checkDriver(db); err != nil {
		return nil, err
	}
	return newStore(&sqlLinks{db: db}, db.Stats().MaxOpenConnections, opts)
}

func newStore(links links, connections int, opts *Options) (*Store, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Schema == "" {
		o.Schema = DefaultSchema
	}
	if err := checkSchema(o.Schema); err != nil {
		return nil, err
	}
	s := &Store{links: links, schema: o.Schema, noMigrate: o.NoMigrate, sql: statementsFor(o.Schema), migrating: make(chan struct{}, 1)}
	if connections > 0 {
		s.transactions = make(chan struct{}, max(1, connections-1))
	}
	return s, nil
}

func checkSchema(name string) error {
	bad := strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f })
	if len(name) > maxSchema || bad {
		return fmt.Errorf("pgfence.Options.Schema %q: use 1 to %d bytes without control characters", name, maxSchema)
	}
	return nil
}
