// The position of a span in its trace, and the W3C header traceparent that carries it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tollgate::tracing {

// The bytes in wire order.
using TraceId = std::array<uint8_t, 16>;

// 0: no span.
using SpanId = uint64_t;

struct TraceContext {
  TraceId trace_id{};
  SpanId span_id = 0;
  // The head of the trace has decided to export it.
  bool sampled = false;

  // Returns the same trace with this span.
  TraceContext Child(SpanId id) const { return {trace_id, id, sampled}; }
  // Returns 32 lower-case hexadecimal digits.
  std::string TraceIdHex() const;

  friend bool operator==(const TraceContext&, const TraceContext&) = default;
};

// Parses a traceparent by the W3C rules for version 00, and a later version by the rules that
// remain valid for it. nullopt if it is invalid: then a new trace begins here.
std::optional<TraceContext> ParseTraceparent(std::string_view text);
// Returns "00-<trace>-<span>-<flags>", 55 characters.
std::string FormatTraceparent(const TraceContext& context);

// Returns a random id that is never 0. Not secret. Thread-safe.
SpanId NewSpanId();
// The id of a span's number-th child: unique among the children and, except by chance, among all
// spans. For spans that are only numbered while their request runs.
SpanId ChildSpanId(SpanId parent, int number);

}  // namespace tollgate::tracing
