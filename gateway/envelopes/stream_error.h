// Errors inside a stream that has begun.
#pragma once

#include <string>

#include "common/error/error.h"

namespace tollgate::gateway {

// The event that ends a chat or completions stream that broke; no [DONE] follows (decisions.md 23).
std::string OpenAiStreamError(const Error& error);

// The event that ends a Messages stream that broke; no message_stop follows.
std::string MessagesStreamError(const Error& error);

// {"code":…,"message":…}: the error of a response that failed, with a code of the published list
// where it has one that fits (wire.md 5.3).
std::string ResponseError(const Error& error);

}  // namespace tollgate::gateway
