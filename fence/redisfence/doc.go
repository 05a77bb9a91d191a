// Package redisfence keeps a fence in Redis or Valkey: one node, Sentinel or
// Cluster, through the user's own go-redis client.
//
// # What it does
//
// A batch is one script on one node, or one script per bucket in a cluster, and
// one round trip to each node; every key it touches is declared. Each record is
// one packed string (see package fence/driver) that begins with what a person
// wants to see, pending, requeued, dead or done:<effect id>, and a zero byte. Its
// key is
//
//	idemp:{<namespace text>:<bucket>}:<key digest, 64 hexadecimal digits>
//
// with bucket = first byte of the digest modulo the number of buckets. Done
// records and those without doubt expire by themselves; pending ones and doubt
// never do. The marker of a namespace is the hash
// idemp:{<namespace text>:m}:marker.
//
// # What it needs
//
// Redis 7.0 or Valkey 7.2, 64 bits, maxmemory-policy noeviction. The user's ACL
// must allow HELLO, EVALSHA, EVAL, TIME, INFO and SCAN, and on keys idemp:* GET,
// SET, SETNX, GETRANGE, SETRANGE, HGET, HSET and HGETALL; with
// Options.WaitReplicas also WAIT, in a cluster CLUSTER SLOTS. CONFIG GET tells
// more about persistence where it is allowed.
//
// When the server's memory is full it refuses claims; seals and other
// transitions are still taken, since most of them make a record smaller.
//
// # What a crash or failover loses
//
// Redis acknowledges before its replicas have the write and, unless appendfsync
// is always, before the disk has it. A failover may therefore lose the last
// claims and seals: a lost seal is a claim in doubt or, if the claim is lost with
// it, a key that looks new. [Options].WaitReplicas holds answers back until
// replicas have them. [Store.Grade] tells what the live settings promise.
//
// # Lost replies
//
// go-redis sends a command again when its reply is lost (MaxRetries, 3 by
// default). That is harmless: claims and releases carry a nonce, every other
// transition compares the token.
package redisfence
