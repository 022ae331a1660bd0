// How a log record becomes one line; apart from writing it, so that tests need no file descriptor.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "common/observability/log.h"

namespace tollgate::log {

// One JSON object and a line break. wall_us: microseconds since the Unix epoch.
std::string FormatLine(Level level, int64_t wall_us, std::string_view process,
                       std::string_view message, std::initializer_list<Field> fields);

// The text with everything that looks like a credential replaced: sk-… keys, bearer tokens, and the
// password in a connection URL.
std::string Redact(std::string_view text);

// "2026-11-21T03:55:00.000123Z".
std::string Rfc3339(int64_t wall_us);

}  // namespace tollgate::log
