// Keys that came from one key by rotation.
#pragma once

#include <string>

#include "tollgate/auth/v1/auth.pb.h"

namespace tollgate {

// The id under which the limiter and idempotency know the key: that of the first key of its
// lineage, so that rotating a key renews nothing.
inline const std::string& LineageOf(const auth::v1::Key& key) {
  return key.lineage().empty() ? key.key_id() : key.lineage(0);
}

}  // namespace tollgate
