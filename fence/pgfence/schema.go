package pgfence

import (
	"strings"

	"github.com/jackc/pgx/v5"
)

// schemaVersion is the version that this program reads and writes.
const schemaVersion = 1

// tokenBlock is how many tokens one draw from the sequence gives, and the most
// claims in one transaction.
const tokenBlock = 512

// migrations[n] makes version n+1 of version n; $S stands for the schema. A
// released one never changes.
//
// fillfactor leaves room on a page for what a seal writes in place of pending:
// such an update touches no index, and the room of the old row is free again
// without a vacuum.
var migrations = [schemaVersion]string{
	`CREATE TABLE $S.version (version integer NOT NULL);
CREATE SEQUENCE $S.token AS bigint INCREMENT BY 512;
CREATE TABLE $S.namespace (
	id bigint PRIMARY KEY, name text NOT NULL, epoch bytea NOT NULL, format smallint NOT NULL, buckets integer NOT NULL
);
CREATE TABLE $S.partitions (
	namespace bigint NOT NULL, topic bytea NOT NULL, partitions integer NOT NULL, PRIMARY KEY (namespace, topic)
);
CREATE TABLE $S.committed (
	namespace bigint NOT NULL, topic bytea NOT NULL, partition integer NOT NULL, next bigint NOT NULL,
	PRIMARY KEY (namespace, topic, partition)
);
CREATE TABLE $S.record (
	namespace bigint NOT NULL, expire bigint NOT NULL, digest bytea NOT NULL, data bytea NOT NULL,
	PRIMARY KEY (namespace, digest)
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
CREATE TABLE $S.expiry (namespace bigint NOT NULL, at bigint NOT NULL, digests bytea NOT NULL);
ALTER TABLE $S.expiry ALTER COLUMN digests SET STORAGE EXTERNAL;
CREATE INDEX expiry_due ON $S.expiry (namespace, at);
INSERT INTO $S.version VALUES (1);`,
}

// SchemaSQL returns the statements that make the fence's schema as this program
// needs it, for those who run such statements themselves and set
// Options.NoMigrate. "" is DefaultSchema. The role of the consumers needs USAGE
// on the schema and its sequence, and SELECT, INSERT, UPDATE and DELETE on its
// tables.
func SchemaSQL(schema string) string {
	if schema == "" {
		schema = DefaultSchema
	}
	return upgradeSQL(schema, 0, true)
}

// upgradeSQL returns the statements that lead from a version to this one.
func upgradeSQL(schema string, from int, create bool) string {
	var out []string
	if create {
		out = append(out, "CREATE SCHEMA $S;")
	}
	out = append(out, migrations[from:]...)
	return strings.ReplaceAll(strings.Join(out, "\n"), "$S", pgx.Identifier{schema}.Sanitize())
}
