// Counts the parser's work, for tests that bound the work of a thread.
#pragma once

#include <cstdint>

namespace tollgate::json::internal {

// Bytes of text that this thread has parsed.
inline thread_local uint64_t parsed_bytes = 0;

}  // namespace tollgate::json::internal
