// The server spans of a call to a service. A call carries items of many requests; each item of a
// traced request names its caller's span and gets its own span.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "common/tracing/trace_context.h"
#include "common/tracing/tracer.h"

namespace tollgate::tracing {

// Both views must live as long as the program.
struct CallName {
  std::string_view scope;   // "tollgate.billing"
  std::string_view method;  // "tollgate.billing.v1.BillingService/Authorize"
};

class CallSpans {
 public:
  CallSpans(CallName name, std::vector<TraceContext> callers, int items, int64_t start_us)
      : name_(name), callers_(std::move(callers)), items_(items), start_us_(start_us) {}

  // Call it at the end of the call. error: a name from a closed set; empty: success.
  void End(std::string_view error) const;

 private:
  const CallName name_;
  const std::vector<TraceContext> callers_;
  const int items_;
  const int64_t start_us_;
};

// Null: no item is traced.
using CallSpansPtr = std::shared_ptr<const CallSpans>;

// traceparents: those of the traced items, as received. Returns null if there are none.
CallSpansPtr BeginCall(CallName name, const std::vector<std::string_view>& traceparents, int items);

// items: messages with a field traceparent.
template <typename Items>
CallSpansPtr BeginCall(CallName name, const Items& items) {
  if (!Enabled()) return nullptr;
  std::vector<std::string_view> traceparents;
  for (const auto& item : items) {
    if (!item.traceparent().empty()) traceparents.push_back(item.traceparent());
  }
  if (traceparents.empty()) return nullptr;
  return BeginCall(name, traceparents, static_cast<int>(items.size()));
}

inline void EndCall(const CallSpansPtr& call, std::string_view error = {}) {
  if (call) call->End(error);
}

}  // namespace tollgate::tracing
