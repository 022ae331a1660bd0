// The limits of a key or workspace: from auth's message to the limiter's.
#pragma once

#include "tollgate/auth/v1/auth.pb.h"
#include "tollgate/ratelimit/v1/ratelimit.pb.h"

namespace tollgate::gateway {

inline bool IsUnlimited(const auth::v1::Limits& limits) {
  return limits.requests_per_minute() == 0 && limits.tokens_per_minute() == 0 &&
         limits.concurrent_requests() == 0;
}

inline void CopyLimits(const auth::v1::Limits& from, ratelimit::v1::SubjectLimits& to) {
  to.set_requests_per_minute(from.requests_per_minute());
  to.set_tokens_per_minute(from.tokens_per_minute());
  to.set_concurrent_requests(from.concurrent_requests());
}

}  // namespace tollgate::gateway
