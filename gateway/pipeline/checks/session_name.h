// The caller's name of its session, which lets all its requests go to one engine (ADR 0032). No
// public format has a member only for this purpose; these are the members that clients send
// (docs/design/wire.md 2.8).
#pragma once

#include <string>
#include <string_view>

#include "common/json/json.h"
#include "gateway/edge/exchange.h"

namespace tollgate::gateway {

// A longer name is ignored: two sessions could have the same name if it were cut.
inline constexpr size_t kMaxSessionName = 256;

// The first of these members that is a string of 1 to kMaxSessionName bytes: `session_id`,
// `prompt_cache_key`, `user`, `metadata.user_id` and `safety_identifier`. Empty if there is none,
// which is never an error.
std::string SessionNameOf(json::Value body);

// The header x-session-id, else x-session-affinity; empty as above. Takes precedence over the body.
std::string_view SessionNameOf(const HttpRequest& request);

}  // namespace tollgate::gateway
