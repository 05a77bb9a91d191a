package sweep

import (
	"context"
	"errors"
	"fmt"

	"github.com/oncefence/oncefence/test/sweep/account"
	"github.com/oncefence/oncefence/test/sweep/member"
)

// Poison sends one record whose effect kills its process, among n others, and
// starts a member anew each time, as whatever supervises it would. It ends when
// all is done, and fails when the process dies more than limit times.
func Poison(ctx context.Context, o Options, combo Combo, n, limit int) (res Result, err error) {
	c, err := openChain(ctx, o, combo, o.Seed)
	if c == nil {
		return newResult(), err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err != nil {
		return c.res, err
	}
	c.cfg.MaxCrashes = 0 // the default
	lines := []account.Line{c.source.Order(member.Order{Crash: true})}
	for range n {
		lines = append(lines, c.source.Order(member.Order{}))
	}
	if err := c.send(ctx, lines); err != nil {
		return c.res, err
	}
	for c.res.Kills <= limit {
		p, err := member.Start(c.program, c.cfg, "", c.log, c.tell)
		if err != nil {
			return c.res, err
		}
		if err := c.wait(ctx, p, func() error { return nil }); err != nil {
			return c.res, fmt.Errorf("%w\n%s", err, tail(c.log.Bytes()))
		}
		if !p.Killed() {
			return c.res, c.account(ctx)
		}
		c.died(p.At)
	}
	return c.res, fmt.Errorf("the record took down more than %d processes", limit)
}
