// The format of a log line. Separate from writing it, so that tests need no file descriptor.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "common/observability/log.h"

namespace tollgate::log {

// Returns one JSON object and a line break. wall_us: microseconds since the Unix epoch.
std::string FormatLine(Level level, int64_t wall_us, std::string_view process,
                       std::string_view message, std::initializer_list<Field> fields);

// Replaces everything that looks like a credential: sk-… keys, keys with a legacy prefix, bearer
// tokens, and the user and password in a URL.
std::string Redact(std::string_view text);

// Sets the legacy prefixes of keys. May be called at any time; meant for the start of a process.
void SetRedactedPrefixes(std::vector<std::string> prefixes);

}  // namespace tollgate::log
