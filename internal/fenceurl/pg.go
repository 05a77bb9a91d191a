package fenceurl

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncefence/oncefence/fence"
	"github.com/oncefence/oncefence/fence/pgfence"
)

// openPostgres reads the client library's own URL, and beside its parameters
// schema for a fence that is not in the default one. With MustExist the schema
// is not made.
func openPostgres(ctx context.Context, raw string, opts *Options) (*fence.Fence, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" || u.Host == "" {
		// The parser's error would repeat the password.
		return nil, errors.New("this is no postgres://USER@HOST:PORT/DATABASE: escape what is special in a password, as %40 for @")
	}
	query := u.Query()
	schema := query.Get("schema")
	query.Del("schema")
	u.RawQuery = query.Encode()
	config, err := pgxpool.ParseConfig(u.String())
	if err != nil {
		return nil, err // pgx redacts the password
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	f, err := newPostgres(ctx, pool, &pgfence.Options{Schema: schema, NoMigrate: opts.MustExist}, opts.Fence)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return f, nil
}

func newPostgres(ctx context.Context, pool *pgxpool.Pool, opts *pgfence.Options, fenceOpts *fence.Options) (*fence.Fence, error) {
	if err := pool.Ping(ctx); err != nil {
		return nil, fmt.Errorf("the server cannot be used: %w", err)
	}
	store, err := pgfence.NewStore(pool, opts)
	if err != nil {
		return nil, err
	}
	return fence.New(&ownedPostgres{Store: store, pool: pool}, fenceOpts)
}

// ownedPostgres closes the pool too, which nobody else has.
type ownedPostgres struct {
	*pgfence.Store
	pool *pgxpool.Pool
}

func (s *ownedPostgres) Close() error {
	err := s.Store.Close()
	s.pool.Close()
	return err
}
