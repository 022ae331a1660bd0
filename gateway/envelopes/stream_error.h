// Error events for streams that have begun.
#pragma once

#include <string>

#include "common/error/error.h"

namespace tollgate::gateway {

// Ends a chat-completions or completions stream that failed; no [DONE] follows (decision 23).
std::string OpenAiStreamError(const Error& error);

// Ends a Messages stream that failed; no message_stop follows.
std::string MessagesStreamError(const Error& error);

}  // namespace tollgate::gateway
