// The header Idempotency-Key (decisions 43 and 59): requests with the same key and body within 24 h
// are charged once. Billing decides; the gateway stores and repeats answers, sealed so that billing
// cannot read them.
#pragma once

#include <string>

#include "common/error/error.h"
#include "common/runtime/task.h"
#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

inline constexpr char kIdempotencyKeyHeader[] = "idempotency-key";
// Size limit of an answer that is kept.
inline constexpr size_t kMaxKeptBytes = 64 << 10;

bool HasIdempotencyKey(const HttpRequest& request);
// Digest of path and raw body, compared with that of a repetition.
std::string IdempotencyBodyDigest(const std::string& path, const std::string& body);

// Stage, after the body is parsed: sets context.idempotency_key_digest. Fails with 400.
Result<void> ReadIdempotencyKey(RequestContext& context);

// Stores a complete answer if it can be repeated. cut_by_credit: the answer says so in a header.
Task<void> KeepAnswer(RequestContext& context, const std::string& body, bool cut_by_credit);
// Answers the repetition of a finished request: with the stored answer, or 409.
Task<void> RepeatAnswer(RequestContext& context);

}  // namespace tollgate::gateway
