// A finished span, the argument of Record.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/tracing/trace_context.h"

namespace tollgate::tracing {

enum class SpanKind : uint8_t { kInternal = 1, kServer = 2, kClient = 3 };

// The attribute's name must live as long as the program. Lists are only for attributes that the
// conventions define as lists.
using Value = std::variant<std::string, bool, int64_t, std::vector<std::string>>;
using Attribute = std::pair<std::string_view, Value>;

struct SpanEvent {
  std::string_view name;  // lives as long as the program
  int64_t at_us = 0;
};

struct Span {
  // The part of the program, for example "tollgate.gateway". Must live as long as the program.
  std::string_view scope;
  std::string name;
  SpanKind kind = SpanKind::kInternal;
  TraceContext context;
  SpanId parent = 0;  // 0: the root of the trace
  // Microseconds of the monotonic clock; Record turns them into Unix time.
  int64_t start_us = 0;
  int64_t end_us = 0;
  bool failed = false;
  std::vector<Attribute> attributes;
  std::vector<SpanEvent> events;

  // Approximate size in memory.
  size_t Bytes() const;
};

// How the process is named to the collector.
struct ProcessName {
  std::string service;   // for example "gateway"
  std::string instance;  // differs from process to process
};

}  // namespace tollgate::tracing
