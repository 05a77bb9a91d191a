package boltfence

import (
	"context"
	"fmt"

	"github.com/oncefence/oncefence/fence/driver"
)

// Grade implements driver.Store: machine, or restart without fsync or on a
// file system in memory.
func (s *Store) Grade(ctx context.Context) (driver.Grade, error) {
	if err := s.check(ctx, ""); err != nil {
		return driver.Grade{}, err
	}
	switch {
	case s.db.NoSync:
		return driver.Grade{Level: driver.GradeRestart, Detail: fmt.Sprintf("bbolt file %s, no fsync: a crash of the machine loses answers and may break the file", s.path)}, nil
	case inMemory(s.path):
		return driver.Grade{Level: driver.GradeRestart, Detail: fmt.Sprintf("bbolt file %s on a file system in memory", s.path)}, nil
	}
	return driver.Grade{Level: driver.GradeMachine, Detail: fmt.Sprintf("bbolt file %s, fsync before each answer", s.path)}, nil
}
