// The limiter's scripts for Redis. They do what domain/limiter.h does in memory, with the same
// numbers; tests run both against the same histories.
//
// Each script has one key, "tollgate:{tag}", and derives all others from it and the scope, so that
// all keys of a scope are in one hash slot. There are few tags, each shared by many scopes. A tag
// has
//   tollgate:{tag}:state  a hash: the server that wrote it, when a process was last alive, and
//   until
//                         when no slots are given because some may be missing (µs since 1970)
//   tollgate:{tag}:since  when counting of uses began (µs since 1970); lost with Redis's data
// and a scope, "tollgate:{tag}:SCOPE", has
//   …:b:SUBJECT  a hash: r and t are the microseconds at which the rates will have recovered, R and
//                T the nanoseconds on top; m is the median hold time of a slot, M when it changed
//   …:s:SUBJECT  a sorted set of the slots that the limit on concurrency counts, by expiry
//   …:u:SUBJECT  a hash of the minutes in which it was used, by the minute's number modulo 64:
//                MinuteUse (domain/use.h), packed little-endian; expires an hour after the last use
//   …:l:SLOT     what the slot took: packed {since, expiry, {{subject, requests ns, tokens ns,
//                tokens a minute, slot}…}, tokens}; tokens as admitted, -1 if restored
// Numbers stay below 2^53, so that Lua's doubles are exact: microseconds since 1970, and costs of
// at most two windows in nanoseconds, which the caller computes.
#pragma once

#include "services/ratelimit/redis/redis_client.h"

namespace tollgate::ratelimit {

// Every script first gets the server's run id, which the client adds. Then, except for
// PresenceScript: the scope; the longest time without any process, in µs, in which no slot can
// have expired unrenewed (0: slots are always given); now (empty: the server's time; set by tests
// only).

// Arguments: slot, lifetime in µs, "take" or "read", tokens to count, then for each subject: name,
// shadow (0/1), requests' cost in ns (-1: no limit), tokens' cost (-1: no limit), tokens a minute,
// limit of slots (0: none), hint, used requests, used tokens. Hints restore what Redis has lost.
// Hint 1 counts if Redis knows nothing of the subject. Hint 2 counts if it is higher than what
// Redis knows, and is then stored even if the claim is refused. Answer: held (0/1), then for each
// subject: used requests, used tokens, running, median, all before the charge.
const RedisScript& AcquireScript();

// Arguments: slot, actual tokens, refund (0/1). Answer: whether the slot was held.
const RedisScript& ReleaseScript();

// Arguments: slot, lifetime, then the subjects with a limit on concurrency.
// Answer: 0 unknown, 1 renewed, 2 restored.
const RedisScript& RenewScript();

// Answer: how long no slots are given because some may be missing, in µs. Called every second for
// each tag, which also records that a process is alive.
const RedisScript& WatchScript();

// Arguments: subjects. Answer: now, how long uses have been counted (µs), then for each subject:
// used requests, used tokens, running, median, and a list of packed minutes in any order.
const RedisScript& UseScript();

// Arguments: id of this process, lifetime in µs (0: it leaves). Answer: number of processes.
const RedisScript& PresenceScript();

}  // namespace tollgate::ratelimit
