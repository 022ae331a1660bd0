// The limiter's scripts for Redis: what domain/limiter.h does in memory, with the same numbers.
// Tests run both against the same histories.
//
// Each has one key, "tollgate:{scope}", and derives the others from it, so that all of a scope are
// in one hash slot:
//   …:b:SUBJECT  a hash: r and t are the microseconds at which the rates will have recovered, R and
//                T the nanoseconds on top; m is the median time a slot is held, M when it changed
//   …:s:SUBJECT  a sorted set of the leases that hold a slot, by expiry
//   …:l:LEASE    what the lease took: packed {since, expiry, {{subject, requests ns, tokens ns,
//                tokens a minute, slot}…}}
// Numbers stay below 2^53, so that Lua's doubles are exact: microseconds since 1970, and costs of
// at most two windows in nanoseconds, which the caller computes.
#pragma once

#include "services/ratelimit/redis/redis_client.h"

namespace tollgate::ratelimit {

// Arguments: now (empty: the server's time; set by tests only), lease, lifetime in µs, "take" or
// "read", then for each subject: name, shadow (0/1), requests' cost in ns (-1: no limit), tokens'
// cost (-1), tokens a minute, limit of slots (0: none), hint, used requests, used tokens.
// Hints restore what Redis has lost: 1 counts when it knows nothing of the subject, 2 counts when
// it is more than Redis knows, and is then kept whatever becomes of the claim.
// Answer: held (0/1), then for each subject: used requests, used tokens, running, median, all
// before the charge.
const RedisScript& AcquireScript();

// Arguments: now, lease, actual tokens, refund (0/1). Answer: whether the lease was held.
const RedisScript& ReleaseScript();

// Arguments: now, lease, lifetime, then the subjects with a limit on concurrency.
// Answer: 0 unknown, 1 renewed, 2 restored.
const RedisScript& RenewScript();

// Arguments: id of this process, lifetime in µs; 0: it leaves. Answer: how many processes there
// are.
const RedisScript& PresenceScript();

}  // namespace tollgate::ratelimit
