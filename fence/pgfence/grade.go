package pgfence

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncefence/oncefence/fence/driver"
)

// Grade implements driver.Store, from settings that every role may read, as they
// are in the pool's sessions:
//
//   - volatile: synchronous_commit is off, so that a crash of the server loses
//     what it answered last; or the table is unlogged.
//   - restart: fsync or full_page_writes is off.
//   - machine: on disk before the answer.
//   - replicated: commits wait for the servers that synchronous_standby_names
//     names.
//
// A replica is refused.
func (s *Store) Grade(ctx context.Context) (driver.Grade, error) {
	if s.closed.Load() {
		return driver.Grade{}, driver.ErrClosed
	}
	if err := s.prepare(ctx); err != nil {
		return driver.Grade{}, describe(ctx, "read the settings of PostgreSQL", err)
	}
	var set settings
	var skew time.Duration
	err := s.links.use(ctx, func(conn *pgx.Conn) error {
		sent := time.Now()
		var now int64
		err := conn.QueryRow(ctx, s.sql.grade).Scan(&set.fsync, &set.fullPageWrites, &set.synchronousCommit, &set.standbys, &set.replica, &set.unlogged, &now)
		middle := sent.Add(time.Since(sent) / 2)
		skew = time.Duration(now-driver.Micros(middle)) * time.Microsecond
		return err
	})
	if err != nil {
		return driver.Grade{}, describe(ctx, "read the settings of PostgreSQL", err)
	}
	if set.replica {
		return driver.Grade{}, errReplica
	}
	return driver.Grade{Level: set.level(), Detail: set.String(), Skew: skew}, nil
}

// settings are those that decide what an answer survives.
type settings struct {
	fsync, fullPageWrites, synchronousCommit, standbys string
	replica, unlogged                                  bool
}

func (s settings) level() driver.Level {
	switch {
	case s.unlogged, s.synchronousCommit == "off":
		return driver.GradeVolatile
	case s.fsync != "on", s.fullPageWrites != "on":
		return driver.GradeRestart
	case s.standbys != "" && s.synchronousCommit != "local":
		return driver.GradeReplicated
	}
	return driver.GradeMachine
}

// String names the settings for a person.
func (s settings) String() string {
	text := fmt.Sprintf("fsync=%s full_page_writes=%s synchronous_commit=%s synchronous_standby_names=%q", s.fsync, s.fullPageWrites, s.synchronousCommit, s.standbys)
	if s.unlogged {
		text += " and the table record is unlogged"
	}
	return text
}
