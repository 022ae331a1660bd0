// The place of a span in its trace, and the W3C header traceparent that carries it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tollgate::tracing {

// As on the wire, from the first byte on.
using TraceId = std::array<uint8_t, 16>;

// 0: no span.
using SpanId = uint64_t;

struct TraceContext {
  TraceId trace_id{};
  SpanId span_id = 0;
  // The head has decided that the trace is exported.
  bool sampled = false;

  // The same trace, with this span.
  TraceContext Child(SpanId id) const { return {trace_id, id, sampled}; }
  // 32 lower-case hexadecimal digits.
  std::string TraceIdHex() const;

  friend bool operator==(const TraceContext&, const TraceContext&) = default;
};

// Reads a traceparent by the W3C's rules for version 00, and for later versions what they keep of
// it; nullopt: it is none, and the trace begins here.
std::optional<TraceContext> ParseTraceparent(std::string_view text);
// "00-<trace>-<span>-<flags>", 55 characters.
std::string FormatTraceparent(const TraceContext& context);

// Random, never 0. Not secret. Thread-safe.
SpanId NewSpanId();
// The number-th child of a span: differs from that of any other number and, but for chance, of any
// other span. For spans that are only numbered while their request runs.
SpanId ChildSpanId(SpanId parent, int number);

}  // namespace tollgate::tracing
