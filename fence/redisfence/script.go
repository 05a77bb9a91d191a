package redisfence

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
)

var (
	//go:embed lua/record.lua
	recordLua string
	//go:embed lua/claim.lua
	claimLua string
	//go:embed lua/apply.lua
	applyLua string
	//go:embed lua/get.lua
	getLua string
	//go:embed lua/marker.lua
	markerLua string
)

// script is a Lua script and the name that the server's cache has for it.
type script struct{ text, sha string }

func newScript(text string) *script {
	sum := sha1.Sum([]byte(text))
	return &script{text: text, sha: hex.EncodeToString(sum[:])}
}

// The first line of a script is checked by the server before it runs: one that
// is out of memory, a replica, short of replicas or without its disk refuses
// the whole script, so that no batch is done by half. Transitions are allowed
// when memory is full: most of them make a record smaller, and an applied
// effect that cannot be sealed is in doubt.
var (
	claimScript  = newScript("#!lua\n" + recordLua + claimLua)
	applyScript  = newScript("#!lua flags=allow-oom\n" + recordLua + applyLua)
	getScript    = newScript(getLua)
	markerScript = newScript(markerLua)
)
