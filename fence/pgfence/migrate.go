package pgfence

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// migrationLock is the first key of the two-key advisory lock under which a
// schema is made; the second is from its name. Locks of claims have one key.
const migrationLock = 0x6f6e6365

// prepare makes sure, once, that the schema is the one that this program needs.
// Several processes may start at the same time.
func (s *Store) prepare(ctx context.Context) error {
	if s.prepared.Load() {
		return nil
	}
	select {
	case s.migrating <- struct{}{}:
		defer func() { <-s.migrating }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.prepared.Load() {
		return nil
	}
	err := s.links.use(ctx, func(conn *pgx.Conn) error {
		version, exists, err := s.version(ctx, conn)
		if err != nil || version == schemaVersion {
			return err
		}
		if err := s.mayMigrate(version, exists); err != nil {
			return err
		}
		return s.migrate(ctx, conn)
	})
	if err == nil {
		s.prepared.Store(true)
	}
	return err
}

// version reads the schema's version, 0 if it has no tables.
func (s *Store) version(ctx context.Context, conn queryer) (version int, exists bool, err error) {
	var tables, replica bool
	// Read from the catalogue: to_regclass would answer from a cache that does not
	// notice what another session has made meanwhile.
	err = conn.QueryRow(ctx, s.sql.schema, s.schema).Scan(&exists, &tables, &replica)
	switch {
	case err != nil:
		return 0, false, fmt.Errorf("look for schema %s: %w", s.schema, err)
	case replica:
		return 0, false, errReplica
	case !tables:
		return 0, exists, nil
	}
	err = conn.QueryRow(ctx, s.sql.version).Scan(&version)
	if err != nil {
		return 0, exists, fmt.Errorf("read the version of schema %s: %w", s.schema, err)
	}
	return version, exists, nil
}

var errReplica = errors.New("the server is a read replica: its answers are behind and it takes no claims; connect to the primary (target_session_attrs=read-write)")

func (s *Store) mayMigrate(version int, exists bool) error {
	switch {
	case version > schemaVersion:
		return fmt.Errorf("schema %s has version %d, this program knows up to %d: use the release that made it, or another schema", s.schema, version, schemaVersion)
	case s.noMigrate:
		return fmt.Errorf("schema %s has version %d (0 is none), this program needs %d, and pgfence.Options.NoMigrate is set: let its owner run\n%s",
			s.schema, version, schemaVersion, upgradeSQL(s.schema, version, !exists))
	}
	return nil
}

// migrate makes or upgrades the schema in one transaction.
func (s *Store) migrate(ctx context.Context, conn *pgx.Conn) error {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1, hashtext($2))", migrationLock, s.schema); err != nil {
		return err
	}
	version, exists, err := s.version(ctx, tx)
	if err != nil || version == schemaVersion {
		return err // another process was faster
	}
	if err := s.mayMigrate(version, exists); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, upgradeSQL(s.schema, version, !exists)); err != nil {
		return fmt.Errorf("make schema %s (or let its owner run pgfence.SchemaSQL): %w", s.schema, err)
	}
	if _, err := tx.Exec(ctx, "UPDATE "+pgx.Identifier{s.schema, "version"}.Sanitize()+" SET version = $1", schemaVersion); err != nil {
		return err
	}
	return tx.Commit(ctx)
}
