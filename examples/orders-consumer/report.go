package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"
)

// result is what --json prints.
type result struct {
	tally
	counts
	Charges          int     `json:"charges"`
	ChargedCents     int64   `json:"charged_cents"`
	DoubleCharges    int     `json:"double_charges"`
	Kills            int     `json:"-"`
	Seconds          float64 `json:"seconds"`
	RecordsPerSecond float64 `json:"records_per_second"`
	Broker           string  `json:"broker"`
	Fence            string  `json:"fence"`
	Kind             string  `json:"kind"`
}

// verdict is nil when nothing was charged twice and nothing was lost.
func (r result) verdict() error {
	switch {
	case r.DoubleCharges > 0:
		return fmt.Errorf("%d double charges", r.DoubleCharges)
	case r.Lost > 0:
		return fmt.Errorf("%d orders lost", r.Lost)
	case r.sum() != r.Orders:
		return fmt.Errorf("%d lines sent, %d accounted for", r.Orders, r.sum())
	case r.Charges < r.Applied:
		return fmt.Errorf("%d orders applied, %d charges in the provider's ledger", r.Applied, r.Charges)
	}
	return nil
}

func (r result) printJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

func (r result) printTable(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name string, value any, means string) { fmt.Fprintf(table, "%s\t%v\t%s\n", name, value, means) }
	fmt.Fprintln(table)
	row("orders", r.Orders, "lines sent; each ended as exactly one of the next five")
	row("  applied", r.Applied, "charged")
	row("  duplicates", r.Duplicates, "another line holds the order id, with the same content: dropped")
	row("  conflicts", r.Conflicts, "another line holds the order id, with other content: dead letter")
	row("  dead letters", r.DeadLetters, "cannot be charged, or nobody knows whether they were: for a person")
	row("  lost", r.Lost, "")
	row("deliveries", r.Deliveries, "records handed to the consumers, copies and redeliveries included")
	row("requeued", r.Requeued, "temporary errors, tried again later")
	row("in doubt", r.InDoubt, "effects that ended without a word, by a kill or a fault")
	row("kills", r.Kills, "consumers killed with SIGKILL")
	row("charges", r.Charges, fmt.Sprintf("in the provider's ledger, %.2f in all", float64(r.ChargedCents)/100))
	row("double charges", r.DoubleCharges, "")
	row("time", fmt.Sprintf("%.1fs", r.Seconds), fmt.Sprintf("%.0f orders a second; broker %s, fence %s, kind %s", r.RecordsPerSecond, r.Broker, r.Fence, r.Kind))
	return table.Flush()
}

// progress tells how a run goes: one line that is written over on a terminal,
// plain lines elsewhere.
type progress struct {
	w        io.Writer
	terminal bool
	shown    time.Time
	dirty    bool
}

func newProgress(w io.Writer) *progress {
	p := &progress{w: w, shown: time.Now()}
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil {
			p.terminal = info.Mode()&os.ModeCharDevice != 0
		}
	}
	return p
}

func (p *progress) say(format string, args ...any) {
	p.end()
	fmt.Fprintf(p.w, format+"\n", args...)
}

func (p *progress) show(booked, lines int, c counts, kills int) {
	every := 2 * time.Second
	if p.terminal {
		every = 100 * time.Millisecond
	}
	if time.Since(p.shown) < every {
		return
	}
	p.shown = time.Now()
	text := fmt.Sprintf("%6d charged of %d lines, %d deliveries, %d requeued, %d in doubt, %d kills", booked, lines, c.Deliveries, c.Requeued, c.InDoubt, kills)
	if p.terminal {
		fmt.Fprintf(p.w, "\r\x1b[K%s", text)
		p.dirty = true
		return
	}
	fmt.Fprintln(p.w, text)
}

// end leaves the line that is written over.
func (p *progress) end() {
	if p.dirty {
		fmt.Fprintln(p.w)
		p.dirty = false
	}
}

func joinAddrs(addrs []string) string { return strings.Join(addrs, ",") }
