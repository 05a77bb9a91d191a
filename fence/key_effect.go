package fence

import "encoding/hex"

const effectDomain = "oncefence-effect-1:"

// EffectID is the id under which a sink knows the effect of this key in this
// namespace: the first 32 lower-case hexadecimal digits of the SHA-256 of
// "oncefence-effect-1:" + namespace text + ":" + key text. It is the same over
// attempts, processes, releases, replays and versions of this library, and
// different between groups.
func EffectID(ns Namespace, k Key) string {
	sum := sumText(effectDomain, ns.text, ":", k.text)
	var id [32]byte
	hex.Encode(id[:], sum[:16])
	return string(id[:])
}
