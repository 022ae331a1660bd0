// The W3C header tracestate: what other tracing systems keep with a trace. It is passed on, never
// read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tollgate::tracing {

// Bytes of a tracestate that is passed on, and its members.
inline constexpr size_t kMaxTracestateBytes = 512;
inline constexpr size_t kMaxTracestateMembers = 32;

// The values of all tracestate headers of a request, in order, as one well-formed value. Members at
// the end that do not fit into kMaxTracestateBytes are left out; empty when any member is
// malformed or there are too many: then nothing may be passed on.
std::string CleanTracestate(const std::vector<std::string_view>& values);

}  // namespace tollgate::tracing
