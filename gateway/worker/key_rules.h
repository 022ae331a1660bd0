// What a key allows: models and client addresses. An empty list allows all.
#pragma once

#include <string_view>

#include "tollgate/auth/v1/auth.pb.h"

namespace tollgate::gateway {

// An entry is the model's id, or namespace/* for all models of a namespace.
bool AllowsModel(const auth::v1::Key& key, std::string_view model);
// A client without an IP address, for example on a Unix socket, is in no network.
bool AllowsAddress(const auth::v1::Key& key, std::string_view address);

}  // namespace tollgate::gateway
