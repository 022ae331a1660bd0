// Judges the first bytes of an engine's answer. An engine, or a proxy before it, that sends
// something else (a page, plain text) may keep the connection open, and then only a timeout would
// end the wait for an answer.
#pragma once

#include <string_view>

namespace tollgate::inference_router {

// Whether the bytes can be the start of a stream of server-sent events with JSON data.
bool MayBeEventStream(std::string_view start);

}  // namespace tollgate::inference_router
