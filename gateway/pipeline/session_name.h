// What a caller names its session by, so that all its requests can go to one engine (ADR 0032). No
// public format has a member for it alone; these are what clients send (docs/design/wire.md 2.8).
#pragma once

#include <string>
#include <string_view>

#include "common/json/json.h"
#include "gateway/edge/exchange.h"

namespace tollgate::gateway {

// A longer name is no name: cut off, two sessions could have the same.
inline constexpr size_t kMaxSessionName = 256;

// The first that is a string of 1 to kMaxSessionName bytes: the members `session_id`,
// `prompt_cache_key`, `user`, `metadata.user_id` and `safety_identifier`. Empty: there is none,
// which is never an error.
std::string SessionNameOf(json::Value body);

// The header x-session-id, else x-session-affinity; empty as above. Goes before those of the body.
std::string_view SessionNameOf(const HttpRequest& request);

}  // namespace tollgate::gateway
