//go:build race

package size

const raceEnabled = true
