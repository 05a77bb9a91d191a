package sweep

import (
	"math/rand/v2"
	"slices"

	"github.com/oncefence/oncefence/internal/fault"
	"github.com/oncefence/oncefence/test/sweep/member"
)

// Combo is one kind of effect on one store.
type Combo struct {
	Kind  string
	Store string // "bolt", "redis"; "none" for at-least-once
}

// Combos returns what is swept over the stores.
func Combos(stores ...string) (all []Combo) {
	for _, kind := range member.Kinds {
		if kind == "at-least-once" {
			all = append(all, Combo{kind, "none"})
			continue
		}
		for _, store := range stores {
			all = append(all, Combo{kind, store})
		}
	}
	return all
}

// passes is how often a round meets each point at least: it is killed at one of
// these, drawn from the seed. Batches are few, records are many.
var passes = map[string]int{
	fault.ClaimBefore: 3, fault.ClaimAfter: 3, fault.EffectBefore: 8, fault.EffectAfter: 8, fault.ApplyBefore: 3, fault.ApplyAfter: 3,
	fault.SealAfter: 5, fault.RetryAfter: 2, fault.GiveUpAfter: 1, fault.ProduceBefore: 2, fault.ProduceAfter: 2, fault.HandOverAfter: 1,
	fault.BuryAfter: 1, fault.ReleaseAfter: 1, fault.ProbeAfter: 1, fault.CommitBefore: 3, fault.CommitAfter: 3, fault.MarkAfter: 1,
	fault.AssignedAfter: 1, fault.RevokedBefore: 1,
}

// unfenced are the points of a loop without a fence.
var unfenced = []string{
	fault.EffectBefore, fault.EffectAfter, fault.ProduceBefore, fault.ProduceAfter, fault.CommitBefore, fault.CommitAfter,
	fault.AssignedAfter, fault.RevokedBefore,
}

// Points returns the points that a chain must be killed at.
func (c Combo) Points() []string {
	if c.Kind == "at-least-once" {
		return unfenced
	}
	return slices.DeleteFunc(fault.Points(), func(point string) bool {
		switch point {
		case fault.TransactBefore, fault.TransactAfter: // of another kind
			return true
		case fault.ProbeAfter:
			return c.Kind != "probed"
		case fault.ReleaseAfter: // the others claim only what starts at once
			return c.Kind != "idempotent"
		}
		return false
	})
}

// shot is one planned kill.
type shot struct {
	point string
	nth   int
}

// plan draws the order of the points, and the pass at which each kills.
func (c Combo) plan(random *rand.Rand) (shots []shot) {
	points := c.Points()
	random.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	for _, point := range points {
		shots = append(shots, shot{point, 1 + random.IntN(passes[point])})
	}
	return shots
}
