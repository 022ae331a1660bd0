// Errors inside a stream that has begun.
#pragma once

#include <string>

#include "common/error/error.h"

namespace tollgate::gateway {

// The event that ends a chat or completions stream that broke; no [DONE] follows (decisions.md 23).
std::string OpenAiStreamError(const Error& error);

}  // namespace tollgate::gateway
