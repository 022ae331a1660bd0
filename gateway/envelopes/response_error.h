// The error of a failed response object of the Responses API.
#pragma once

#include <string>

#include "common/error/error.h"

namespace tollgate::gateway {

// {"code":…,"message":…}. Uses a code of the API's published list where one matches
// (docs/design/wire.md 5.3).
std::string ResponseError(const Error& error);

}  // namespace tollgate::gateway
