// The W3C header tracestate: data that other tracing systems attach to a trace. It is passed on and
// never interpreted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tollgate::tracing {

// Limits of a tracestate that is passed on: bytes and members.
inline constexpr size_t kMaxTracestateBytes = 512;
inline constexpr size_t kMaxTracestateMembers = 32;

// Joins the values of all tracestate headers of a request, in order, to one well-formed value.
// Members at the end that do not fit into kMaxTracestateBytes are dropped. Returns "" if any member
// is malformed or there are too many: then nothing may be passed on.
std::string CleanTracestate(const std::vector<std::string_view>& values);

}  // namespace tollgate::tracing
