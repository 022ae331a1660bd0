// The limiter's scripts for Redis: what domain/limiter.h does in memory, with the same numbers.
// Tests run both against the same histories.
//
// Each has one key, "tollgate:{tag}", and derives the others from it and the scope, so that all of
// a scope are in one hash slot. There are few tags, each of many scopes, so that each can have
//   tollgate:{tag}:state  a hash: the server that wrote it, when a process came last, and until
//   when
//                         no slots are given because leases may be missing (µs since 1970)
//   tollgate:{tag}:since  since when uses are counted (µs since 1970), for as long as Redis keeps
//   it
// and of a scope, "tollgate:{tag}:SCOPE",
//   …:b:SUBJECT  a hash: r and t are the microseconds at which the rates will have recovered, R and
//                T the nanoseconds on top; m is the median time a slot is held, M when it changed
//   …:s:SUBJECT  a sorted set of the leases that hold a slot, by expiry
//   …:u:SUBJECT  a hash of the minutes in which it was used, by the minute's number modulo 64:
//                MinuteUse (domain/use.h), packed little-endian; gone an hour after the last use
//   …:l:LEASE    what the lease took: packed {since, expiry, {{subject, requests ns, tokens ns,
//                tokens a minute, slot}…}, tokens}; tokens as admitted, -1 if restored
// Numbers stay below 2^53, so that Lua's doubles are exact: microseconds since 1970, and costs of
// at most two windows in nanoseconds, which the caller computes.
#pragma once

#include "services/ratelimit/redis/redis_client.h"

namespace tollgate::ratelimit {

// The first argument of all is the server's id, which the client adds. Then, except for the
// presence of processes: the scope; the longest time without any process, in µs, in which no lease
// expires for want of a renewal (0: slots are given whatever may be missing); now (empty: the
// server's time; set by tests only).

// Arguments: lease, lifetime in µs, "take" or "read", tokens to count, then for each subject: name,
// shadow (0/1), requests' cost in ns (-1: no limit), tokens' cost (-1), tokens a minute, limit of
// slots (0: none), hint, used requests, used tokens. Hints restore what Redis has lost: 1 counts
// when it knows nothing of the subject, 2 counts when it is more than Redis knows, and is then kept
// whatever becomes of the claim. Answer: held (0/1), then for each subject: used requests, used
// tokens, running, median, all before the charge.
const RedisScript& AcquireScript();

// Arguments: lease, actual tokens, refund (0/1). Answer: whether the lease was held.
const RedisScript& ReleaseScript();

// Arguments: lease, lifetime, then the subjects with a limit on concurrency.
// Answer: 0 unknown, 1 renewed, 2 restored.
const RedisScript& RenewScript();

// Answer: how long no slots are given, in µs, because leases may be missing. Called every second
// for each tag, it notes that a process comes.
const RedisScript& WatchScript();

// Arguments: subjects. Answer: now, for how long uses have been counted (µs), then for each
// subject: used requests, used tokens, running, median, and a list of packed minutes in no order.
const RedisScript& UseScript();

// Arguments: id of this process, lifetime in µs; 0: it leaves. Answer: how many processes there
// are.
const RedisScript& PresenceScript();

}  // namespace tollgate::ratelimit
