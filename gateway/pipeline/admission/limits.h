// Converts the limits of a request from auth's and the catalog's messages to the limiter's.
#pragma once

#include "tollgate/auth/v1/auth.pb.h"
#include "tollgate/catalog/v1/catalog.pb.h"
#include "tollgate/ratelimit/v1/ratelimit.pb.h"

namespace tollgate::gateway {

// Limits: auth::v1::Limits or catalog::v1::Capacity.
template <typename Limits>
bool IsUnlimited(const Limits& limits) {
  return limits.requests_per_minute() == 0 && limits.tokens_per_minute() == 0 &&
         limits.concurrent_requests() == 0;
}

template <typename Limits>
void CopyLimits(const Limits& from, ratelimit::v1::SubjectLimits& to) {
  to.set_requests_per_minute(from.requests_per_minute());
  to.set_tokens_per_minute(from.tokens_per_minute());
  to.set_concurrent_requests(from.concurrent_requests());
  to.set_shadow(from.shadow());
}

// Collects everything that limits a request of this key for this model (null: no model): the limits
// of the key and its workspace, of each of them for the model, and the model's capacity. Leaves
// absent limits unset. Returns false if there are none.
bool CollectLimits(const auth::v1::Key& key, const catalog::v1::Model* model,
                   ratelimit::v1::AcquireItem& item);

}  // namespace tollgate::gateway
