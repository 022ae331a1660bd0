// The header Idempotency-Key (decisions 43 and 59): the same key and body within 24 h never bill
// twice. Billing decides; the gateway keeps and repeats answers, sealed so that billing cannot read
// them.
#pragma once

#include <string>

#include "common/error/error.h"
#include "common/runtime/task.h"
#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

inline constexpr char kIdempotencyKeyHeader[] = "idempotency-key";
// Of an answer that is kept.
inline constexpr size_t kMaxKeptBytes = 64 << 10;

bool HasIdempotencyKey(const HttpRequest& request);
// Of the raw body, for the comparison with that of a repetition.
std::string IdempotencyBodyDigest(const std::string& path, const std::string& body);

// Stage, after the body is parsed: sets context.idempotency_key_digest. Fails with 400.
Result<void> ReadIdempotencyKey(RequestContext& context);

// Keeps a complete answer, if it can be repeated. cut_by_credit: it says so in a header.
Task<void> KeepAnswer(RequestContext& context, const std::string& body, bool cut_by_credit);
// Answers a repetition of an answered request: the kept answer, or 409.
Task<void> RepeatAnswer(RequestContext& context);

}  // namespace tollgate::gateway
