package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/oncefence/oncefence/internal/bench"
	"github.com/oncefence/oncefence/internal/fenceurl"
)

var benchCommand = command{
	name:    "bench",
	summary: "measure the whole loop on your own fence store",
	run:     runBench,
}

const benchUsage = `
Usage: oncefence bench --fence URL [FLAGS]

Runs the whole loop from generated records (200 bytes, an effect that does
nothing), then claims and seals written by hand in batches of the same size, then
the one-at-a-time recipe, against the same store, interleaved in rounds, and prints
the medians. Then 100 records a second for a while, for the latency that the fence
adds. It works in a key space of its own and removes it.
`

func runBench(ctx context.Context, args []string, out streams) error {
	flags := newFlags("bench", benchUsage)
	url := flags.String("fence", "", "fence store `URL`: "+bench.Known)
	records := flags.Int("records", 200_000, "`number` of records, in all rounds together (default 200000)")
	rounds := flags.Int("rounds", 5, "`number` of rounds (default 5)")
	asJSON := flags.Bool("json", false, "print one JSON object")
	rest, err := flags.parse(args, out)
	switch {
	case err != nil:
		return err
	case len(rest) > 0:
		return usagef("unexpected argument %q", rest[0])
	case *url == "":
		return usagef("--fence is missing: %s", bench.Known)
	case *records < 1000:
		return usagef("--records is %d: at least 1000 are needed to measure anything", *records)
	case *rounds < 1:
		return usagef("--rounds is %d: it must be positive", *rounds)
	}
	res, err := bench.Run(ctx, *url, bench.Options{Records: *records, Rounds: *rounds}, func(format string, args ...any) {
		out.complain(format+"\n", args...)
	})
	if err != nil {
		return err
	}
	res.Fence = fenceurl.Redact(*url)
	if *asJSON {
		text, err := json.MarshalIndent(res, "", "  ")
		if err != nil {
			return err
		}
		return out.print(string(text) + "\n")
	}
	return out.print(benchTable(res))
}

func benchTable(r bench.Result) string {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(name, value, means string) { fmt.Fprintf(table, "%s\t%s\t%s\n", name, value, means) }
	row("loop", fmt.Sprintf("%.0f/s", r.FencedPerSecond), "records through the whole loop")
	row("by hand", fmt.Sprintf("%.0f/s", r.FloorPerSecond), fmt.Sprintf("claim and seal in batches, nothing else; the loop does %.2f of it", r.RatioFloor))
	row("one at a time", fmt.Sprintf("%.0f/s", r.NaivePerSecond), fmt.Sprintf("the usual recipe; the loop does %.1f times it", r.RatioNaive))
	row("latency", fmt.Sprintf("%.2f ms", r.P50), fmt.Sprintf("p50 from delivery to seal at 100 records/s; p99 %.2f ms", r.P99))
	row("allocations", fmt.Sprintf("%.1f", r.AllocsPerRecord), "per record, source and store client included")
	row("store", fmt.Sprintf("%.0f bytes", r.StoreBytesPerRecord), "per sealed record, in the last round")
	_ = table.Flush() // a strings.Builder takes everything
	return b.String()
}
