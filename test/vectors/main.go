// Command vectors answers the key vectors in fence/testdata/keys.json with the
// library and compares. Published vectors do not change: a difference is a
// broken promise to every key that was stored, not a file to be refreshed.
//
// To add a vector, write its question (parts, namespace) into the file and run
// `go run ./test/vectors -write`, which fills in the answers of new and old
// ones; the change must then show added lines only.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
)

func main() {
	write := flag.Bool("write", false, "write the library's answers into the file")
	path := flag.String("file", "fence/testdata/keys.json", "the vector file")
	flag.Parse()
	if err := run(*path, *write); err != nil {
		fmt.Fprintln(os.Stderr, "vectors:", err)
		os.Exit(1)
	}
}

func run(path string, write bool) error {
	before, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	after, err := Answered(before)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	switch {
	case bytes.Equal(before, after):
		return nil
	case write:
		return os.WriteFile(path, after, 0o644)
	default:
		return fmt.Errorf("%s: the library's answers differ from the published ones: see what -write changes, and why", path)
	}
}
