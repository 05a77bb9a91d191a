#!/usr/bin/env python3
"""Builds every key in fence/testdata/keys.json without the library.

This is the rule of docs/keys.md in the fewest lines, for porting to another
language. Usage: check.py [keys.json]. Exit status 0 if all vectors agree.
"""

import hashlib
import json
import os
import re
import sys

PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~/@+=,- ")


def escape(data: bytes) -> str:
    return "".join(chr(c) if c in PLAIN else "%%%02X" % c for c in data)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def part(p) -> str:
    """One part, from the file's notation to canonical text."""
    if p is None:
        return "%-"
    if isinstance(p, str):
        return escape(p.encode("utf-8"))
    if "hex" in p:
        return escape(bytes.fromhex(p["hex"]))
    if "offset_id" in p:
        at = p["offset_id"]
        return "%%@%s/%d/%d" % (at["topic_id"], at["leader_epoch"], at["offset"])
    value = p["payload_id"]
    return "%#-" if value is None else "%#" + sha256(bytes.fromhex(value))


def join(parts) -> str:
    return ":".join(part(p) for p in parts)


def record_parts(v):
    place = {
        "partition": [v["topic"], str(v["partition"]), v["message_key"]],
        "topic": [v["topic"], "", v["message_key"]],
        "id": ["", "", ""],
    }
    return place[v["scope"]] + v["dedupe"]


def named_parts(v):
    return {"document": ["doc"], "index": ["index"]}.get(v["make"], []) + v["args"]


def effect_id(namespace: str, text: str) -> str:
    return sha256(("oncefence-effect-1:" + namespace + ":" + text).encode("ascii"))[:32]


def fingerprint(value) -> str:
    return "1:" + ("0" * 32 if value is None else sha256(bytes.fromhex(value))[:32])


def int_in(s: str, bits: int) -> bool:
    return bool(re.fullmatch(r"0|-?[1-9][0-9]*", s)) and -(1 << bits - 1) <= int(s) < 1 << bits - 1


def canonical(text: str) -> bool:
    """Whether some key has this text."""
    return all(canonical_part(p) for p in text.split(":"))


def canonical_part(p: str) -> bool:
    if p == "%-" or re.fullmatch(r"%#(-|[0-9a-f]{64})", p):
        return True
    at = re.fullmatch(r"%@[0-9a-f]{32}/([^/]*)/([^/]*)", p)
    if at:
        return int_in(at[1], 32) and int_in(at[2], 64)
    if not re.fullmatch(r"([A-Za-z0-9._~/@+=,\- ]|%[0-9A-F]{2})*", p):
        return False
    # What is escaped must not be plain: escaping the bytes again gives p.
    data = re.sub(rb"%(..)", lambda m: bytes.fromhex(m[1].decode()), p.encode("ascii"))
    return escape(data) == p


def main() -> int:
    here = os.path.dirname(os.path.abspath(__file__))
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "..", "..", "fence", "testdata", "keys.json")
    with open(path, encoding="utf-8") as f:
        vectors = json.load(f)
    wrong = count = 0

    def check(what, got, want):
        nonlocal wrong, count
        count += 1
        if got != want:
            wrong += 1
            print("%s: got %r, published %r" % (what, got, want), file=sys.stderr)

    for group, parts_of in (("keys", lambda v: v["parts"]), ("records", record_parts), ("named", named_parts)):
        for v in vectors[group]:
            text = join(parts_of(v))
            check("text", text, v["text"])
            check("digest of " + text, sha256(text.encode("ascii")), v["digest"])
            check("canonical " + text, canonical(text), True)
            if "namespace" in v:
                namespace = join(v["namespace"])
                check("namespace", namespace, v["namespace_text"])
                check("effect id of " + text, effect_id(namespace, text), v["effect_id"])
    for v in vectors["fingerprints"]:
        check("fingerprint", fingerprint(v["value_hex"]), v["fingerprint"])
    for v in vectors["refused"]:
        check("canonical " + v["text"], canonical(v["text"]), False)

    print("%d answers checked, %d wrong" % (count, wrong))
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
